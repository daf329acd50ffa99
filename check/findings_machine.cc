#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "check/findings.h"

namespace muster::check {
namespace {

using Findings = std::vector<Finding>;

constexpr auto kProblem = Severity::kProblem;
constexpr auto kRemark = Severity::kRemark;

constexpr int64_t kMiB = 1024 * 1024;
constexpr int64_t kSharedMemoryMin = 256 * kMiB;  // NCCL takes some 10 MiB for each pair of ranks
constexpr int64_t kLockedMemoryMin = 64 * kMiB;

std::vector<std::string> NamesOf(const std::vector<Interface>& interfaces) {
  std::vector<std::string> names;
  for (const Interface& interface : interfaces) names.push_back(interface.name);
  return names;
}

// InfiniBand devices without their port and state: "mlx5_0:1 ACTIVE" is mlx5_0.
std::vector<std::string> DevicesOf(const std::vector<std::string>& infiniband) {
  std::vector<std::string> names;
  for (const std::string& text : infiniband) names.push_back(text.substr(0, text.find(':')));
  return names;
}

// NCCL's way to name interfaces and devices: a list of beginnings; with '=' in front of the list
// whole names, with '^' those that are not to be used.
bool NcclNamesAny(absl::string_view list, const std::vector<std::string>& names) {
  const bool is_excluded = absl::ConsumePrefix(&list, "^");
  const bool is_exact = absl::ConsumePrefix(&list, "=");
  const std::vector<std::string> wanted = absl::StrSplit(list, ',');
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    const bool is_named = std::any_of(wanted.begin(), wanted.end(), [&](const std::string& word) {
      const std::string own = word.substr(0, word.find(':'));  // a device's port may follow
      return is_exact ? name == own : absl::StartsWith(name, own);
    });
    return is_named != is_excluded;
  });
}

// Only a remark on one host, where they choose no network, unless NCCL is going to fail on it.
void AddInterfaceVariables(const Facts& node, bool spans_hosts, Findings* findings) {
  const std::vector<std::string> names = NamesOf(node.interfaces);
  const auto add = [&](const char* variable, const std::string& value, bool is_used,
                       const char* by_whom) {
    findings->push_back(
        {is_used ? kProblem : kRemark, NodeText(node),
         absl::StrCat(variable, "=", value,
                      " names no interface that is up on this host: ", by_whom),
         absl::StrCat("there are ", absl::StrJoin(names, ", "),
                      ": name one of them, or unset it: muster names the address")});
  };
  constexpr std::pair<const char*, const char*> kListed[] = {
      {"GLOO_SOCKET_IFNAME", "Gloo in Python fails on it, muster's SDK does not look"},
      {"TP_SOCKET_IFNAME", "RPC in Python takes it, muster's SDK does not look"}};
  for (const auto& [variable, by_whom] : kListed) {
    const std::string value = VariableOf(node, variable);
    if (value.empty()) continue;
    for (const absl::string_view name : absl::StrSplit(value, ',')) {
      if (std::find(names.begin(), names.end(), name) == names.end()) {
        add(variable, value, spans_hosts, by_whom);
        break;
      }
    }
  }
  const std::string nccl = VariableOf(node, "NCCL_SOCKET_IFNAME");
  if (nccl.empty() || NcclNamesAny(nccl, names)) return;
  const bool is_nccl = node.backend == "nccl";
  add("NCCL_SOCKET_IFNAME", nccl, spans_hosts || is_nccl,
      is_nccl ? "NCCL fails on it" : "NCCL fails on it, gloo does not look");
}

void AddHostName(const Facts& node, Findings* findings) {
  // Whoever is told the interface does not look.
  if (!VariableOf(node, "GLOO_SOCKET_IFNAME").empty()) return;
  const auto& found = node.host_addresses;
  const bool is_reachable = std::any_of(found.begin(), found.end(), [&](const std::string& one) {
    const Interface* interface = InterfaceOf(node, one);
    return interface != nullptr && interface->name != "lo";
  });
  if (is_reachable) return;
  findings->push_back(
      {kRemark, NodeText(node),
       absl::StrCat(
           "its own name resolves to ", found.empty() ? "nothing" : absl::StrJoin(found, ", "),
           ", which no other host reaches: Gloo in Python takes it, muster's SDK does not"),
       "correct /etc/hosts, or set GLOO_SOCKET_IFNAME to the interface's name"});
}

bool IsOn(const Facts& node, const char* variable) {
  const std::string value = VariableOf(node, variable);
  return !value.empty() && value != "0";
}

void AddWithoutPeers(const Facts& node, Findings* findings) {
  if (node.all_gpus < 2) return;
  const std::string level = VariableOf(node, "NCCL_P2P_LEVEL");
  const bool is_level_off = level == "LOC" || level == "0";
  if (!IsOn(node, "NCCL_P2P_DISABLE") && !is_level_off) return;
  findings->push_back(
      {kRemark, NodeText(node),
       absl::StrCat(is_level_off ? "NCCL_P2P_LEVEL=" + level : "NCCL_P2P_DISABLE=1", ": ",
                    node.all_gpus, " GPUs do not copy to each other directly"),
       "unset it, unless the machine hangs without it"});
}

void AddInfiniband(const Facts& node, Findings* findings) {
  if (node.infiniband.empty()) return;
  const std::string hca = VariableOf(node, "NCCL_IB_HCA");
  if (IsOn(node, "NCCL_IB_DISABLE")) {
    findings->push_back(
        {kRemark, NodeText(node),
         absl::StrCat("NCCL_IB_DISABLE=", VariableOf(node, "NCCL_IB_DISABLE"),
                      ", and there is InfiniBand or RoCE: ", absl::StrJoin(node.infiniband, ", ")),
         "unset it: NCCL uses TCP as long as it is set"});
    return;
  }
  if (!hca.empty() && !NcclNamesAny(hca, DevicesOf(node.infiniband))) {
    findings->push_back({kProblem, NodeText(node),
                         absl::StrCat("NCCL_IB_HCA=", hca, " names no device of this host"),
                         absl::StrCat("there are ", absl::StrJoin(node.infiniband, ", "),
                                      ": name one of them, or unset it")});
  }
  const bool is_any_active =
      std::any_of(node.infiniband.begin(), node.infiniband.end(),
                  [](const std::string& text) { return absl::EndsWith(text, " ACTIVE"); });
  if (!is_any_active) {
    findings->push_back(
        {kRemark, NodeText(node),
         absl::StrCat("no port of InfiniBand is active: ", absl::StrJoin(node.infiniband, ", ")),
         "look at cable, switch and subnet manager (ibstat): NCCL uses TCP"});
  } else if (node.backend == "nccl" && node.locked_memory >= 0 &&
             node.locked_memory < kLockedMemoryMin) {
    findings->push_back({kProblem, NodeText(node),
                         absl::StrCat("at most ", node.locked_memory / 1024,
                                      " KiB of memory may be locked, and InfiniBand needs more"),
                         "allow more: ulimit -l unlimited, LimitMEMLOCK=infinity"});
  }
}

void AddSharedMemory(const Facts& node, Findings* findings) {
  if (node.backend != "nccl" || node.workers < 2 || node.shared_memory == 0) return;
  if (node.shared_memory >= kSharedMemoryMin) return;
  findings->push_back(
      {kRemark, NodeText(node),
       absl::StrCat("/dev/shm has ", node.shared_memory / kMiB, " MiB: NCCL may run out of it"),
       "give the container more (--shm-size, an emptyDir with medium Memory)"});
}

}  // namespace

void AddMachineFindings(const Facts& node, bool spans_hosts, Findings* findings) {
  AddInterfaceVariables(node, spans_hosts, findings);
  if (spans_hosts) AddHostName(node, findings);
  AddWithoutPeers(node, findings);
  AddInfiniband(node, findings);
  AddSharedMemory(node, findings);
}

void AddGpuFindings(const std::vector<Facts>& ranks, Findings* findings) {
  std::map<int, const Facts*> worst;  // of each node the last rank that has no GPU
  for (const Facts& facts : ranks) {
    if (facts.backend == "nccl" && facts.local_rank >= facts.gpus) worst[facts.node] = &facts;
  }
  for (const auto& [node, facts] : worst) {
    if (facts->gpus == 0) {
      const bool is_hidden = facts->all_gpus > 0;
      findings->push_back(
          {kProblem, NodeText(*facts),
           absl::StrCat("the backend is nccl, and rank ", facts->rank, " sees no GPU",
                        is_hidden ? " (CUDA_VISIBLE_DEVICES=" +
                                        VariableOf(*facts, "CUDA_VISIBLE_DEVICES") + ")"
                                  : ""),
           is_hidden ? "correct CUDA_VISIBLE_DEVICES"
                     : "install the driver, pass the GPUs into the container, or use gloo"});
    } else {
      findings->push_back(
          {kProblem, NodeText(*facts),
           absl::StrCat("has ", facts->workers, " workers and ", facts->gpus,
                        facts->gpus == 1 ? " GPU" : " GPUs", ": NCCL refuses two ranks on one"),
           "lower --nproc-per-node, or give gpu"});
    }
  }
}

}  // namespace muster::check
