#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "check/findings.h"

namespace muster::check {
namespace {

using Findings = std::vector<Finding>;
using Nodes = std::vector<const Facts*>;

constexpr auto kProblem = Severity::kProblem;
constexpr auto kRemark = Severity::kRemark;

// "2.11.0 on node 0 (a); none on node 1 (b)"; empty where all are the same.
std::string Differences(const Nodes& nodes, std::string Facts::*member) {
  std::map<std::string, std::vector<std::string>> by_value;
  for (const Facts* node : nodes) by_value[node->*member].push_back(NodeText(*node));
  if (by_value.size() < 2) return "";
  std::vector<std::string> parts;
  for (const auto& [value, places] : by_value) {
    parts.push_back(
        absl::StrCat(value.empty() ? "none" : value, " on ", absl::StrJoin(places, ", ")));
  }
  return absl::StrJoin(parts, "; ");
}

// A node that was told not to look says nothing of its LibTorch, nor of the NCCL beside it, that
// could be compared with those of nodes that have looked.
struct Lookers {
  explicit Lookers(const Nodes& nodes) {
    for (const Facts* node : nodes) (node->torch == "no" ? blind : looking).push_back(node);
    has_libtorch = std::any_of(looking.begin(), looking.end(),
                               [](const Facts* node) { return !node->libtorch.empty(); });
  }
  Nodes looking;
  Nodes blind;
  bool has_libtorch = false;
};

void AddVersions(const Nodes& nodes, Findings* findings) {
  struct Compared {
    const char* name;
    std::string Facts::*member;
    Severity severity;
    const char* advice;
  };
  constexpr Compared kCompared[] = {
      {"muster", &Facts::muster, kProblem, "install the same release on all nodes"},
      {"LibTorch", &Facts::libtorch, kProblem,
       "use the same one on all nodes: tensors and stores are not exchanged between releases"},
      {"NCCL", &Facts::nccl, kProblem,
       "use the same one on all nodes: NCCL refuses or hangs with peers of another release"},
      {"the backend", &Facts::backend, kProblem,
       "give the nodes the same GPUs and CUDA_VISIBLE_DEVICES, or choose one with --backend"},
      {"the NVIDIA driver", &Facts::driver, kRemark, "use the same one on all nodes"},
  };
  const Lookers lookers(nodes);
  for (const Compared& compared : kCompared) {
    const bool is_seen_by_some = lookers.has_libtorch && (compared.member == &Facts::libtorch ||
                                                          compared.member == &Facts::nccl);
    const std::string differences =
        Differences(is_seen_by_some ? lookers.looking : nodes, compared.member);
    if (differences.empty()) continue;
    findings->push_back({compared.severity, "",
                         absl::StrCat(compared.name, " differs: ", differences), compared.advice});
  }
}

void AddBlind(const Nodes& nodes, Findings* findings) {
  const Lookers lookers(nodes);
  if (!lookers.has_libtorch) return;
  for (const Facts* node : lookers.blind) {
    findings->push_back({kRemark, NodeText(*node),
                         "--torch no: its LibTorch is not looked at, and so no all-reduce of "
                         "LibTorch's is measured",
                         "leave --torch no away there, or give it on all nodes"});
  }
}

void AddMtus(const Nodes& nodes, Findings* findings) {
  std::map<int, std::vector<std::string>> by_mtu;
  for (const Facts* node : nodes) {
    const Interface* interface = InterfaceOf(*node, node->address);
    if (interface == nullptr) continue;
    by_mtu[interface->mtu].push_back(absl::StrCat(interface->name, " of ", NodeText(*node)));
  }
  if (by_mtu.size() < 2) return;
  std::vector<std::string> parts;
  for (const auto& [mtu, places] : by_mtu) {
    parts.push_back(absl::StrCat(mtu, " on ", absl::StrJoin(places, ", ")));
  }
  findings->push_back({kRemark, "", absl::StrCat("the MTU differs: ", absl::StrJoin(parts, "; ")),
                       "set the same one everywhere: large messages may hang where small ones "
                       "get through"});
}

// What is each node's own business.
bool MayDiffer(absl::string_view variable) {
  return absl::EndsWith(variable, "_SOCKET_IFNAME") || variable == "NCCL_IB_HCA" ||
         variable == "CUDA_VISIBLE_DEVICES" || absl::StartsWith(variable, "NCCL_DEBUG") ||
         absl::StartsWith(variable, "NCCL_TOPO");
}

void AddVariables(const Nodes& nodes, Findings* findings) {
  std::set<std::string> names;
  for (const Facts* node : nodes) {
    for (const auto& [name, value] : node->variables) names.insert(name);
  }
  for (const std::string& name : names) {
    if (MayDiffer(name)) continue;
    std::map<std::string, std::vector<std::string>> by_value;
    for (const Facts* node : nodes) by_value[VariableOf(*node, name)].push_back(NodeText(*node));
    if (by_value.size() < 2) continue;
    std::vector<std::string> parts;
    for (const auto& [value, places] : by_value) {
      parts.push_back(
          absl::StrCat(value.empty() ? "not set" : value, " on ", absl::StrJoin(places, ", ")));
    }
    findings->push_back({kRemark, "", absl::StrCat(name, " differs: ", absl::StrJoin(parts, "; ")),
                         "set it alike on all nodes"});
  }
}

}  // namespace

void AddDifferences(const Nodes& nodes, Findings* findings) {
  AddVersions(nodes, findings);
  AddBlind(nodes, findings);
  AddMtus(nodes, findings);
  AddVariables(nodes, findings);
}

}  // namespace muster::check
