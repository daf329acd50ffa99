#include "agent/numa_plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace muster {
namespace {

using CpuLists = std::vector<std::vector<int>>;

// The groups of `cpus` by `key`, in the order of the keys.
template <typename Key>
std::map<int, std::vector<Cpu>> GroupedBy(const std::vector<Cpu>& cpus, const Key& key) {
  std::map<int, std::vector<Cpu>> groups;
  for (const Cpu& cpu : cpus) groups[key(cpu)].push_back(cpu);
  return groups;
}

std::vector<int> Ids(const std::vector<Cpu>& cpus) {
  std::vector<int> ids;
  for (const Cpu& cpu : cpus) ids.push_back(cpu.id);
  std::sort(ids.begin(), ids.end());
  return ids;
}

int NodeOf(const Cpu& cpu) { return cpu.node; }

std::vector<int> NodeOfEachRank(const std::map<int, std::vector<Cpu>>& nodes,
                                const std::vector<int>& gpu_nodes, int slots) {
  std::vector<int> round;
  for (const auto& [node, cpus] : nodes) round.push_back(node);
  std::vector<int> result;
  for (int rank = 0; rank < slots; ++rank) {
    int node = gpu_nodes.empty() ? -1 : gpu_nodes[rank % gpu_nodes.size()];
    if (!nodes.contains(node)) node = round[rank % round.size()];
    result.push_back(node);
  }
  return result;
}

// All CPUs of the sockets that the NUMA node has CPUs of.
std::vector<int> SocketsOf(const Topology& topology, const std::vector<Cpu>& node) {
  std::set<int> sockets;
  for (const Cpu& cpu : node) sockets.insert(cpu.socket);
  std::vector<Cpu> cpus;
  for (const Cpu& cpu : topology.cpus) {
    // Where the kernel does not tell sockets, a NUMA node is one.
    const bool here = cpu.socket < 0 ? cpu.node == node.front().node : sockets.contains(cpu.socket);
    if (here) cpus.push_back(cpu);
  }
  return Ids(cpus);
}

// The `index`-th of `workers` shares of the cores.
absl::StatusOr<std::vector<int>> ShareOf(const std::vector<Cpu>& node, int index, int workers) {
  std::map<int, std::vector<Cpu>> cores = GroupedBy(node, [](const Cpu& cpu) { return cpu.core; });
  const int count = static_cast<int>(cores.size());
  if (count < workers) {
    return absl::FailedPreconditionError(absl::StrCat("NUMA node ", node.front().node, " has ",
                                                      count, " cores for ", workers,
                                                      " workers: start fewer, or bind to node"));
  }
  const int first = index * (count / workers) + std::min(index, count % workers);
  const int size = count / workers + (index < count % workers ? 1 : 0);
  std::vector<Cpu> cpus;
  int at = 0;
  for (const auto& [core, threads] : cores) {
    if (at >= first && at < first + size) cpus.insert(cpus.end(), threads.begin(), threads.end());
    ++at;
  }
  return Ids(cpus);
}

std::vector<int> CacheOf(const std::vector<Cpu>& node, int index) {
  std::vector<std::vector<Cpu>> caches;
  for (auto& [l3, cpus] : GroupedBy(node, [](const Cpu& cpu) { return cpu.l3; })) {
    caches.push_back(cpus);
  }
  std::stable_sort(caches.begin(), caches.end(),
                   [](const auto& a, const auto& b) { return a.size() > b.size(); });
  return Ids(caches[index % caches.size()]);
}

}  // namespace

absl::StatusOr<CpuLists> PlanCpus(NumaBinding binding, const Topology& topology,
                                  const std::vector<int>& gpu_nodes, int slots) {
  CpuLists plan(slots);
  if (binding == NumaBinding::kNone) return plan;
  if (topology.cpus.empty()) {
    return absl::FailedPreconditionError(
        "the kernel does not tell which CPUs this machine has (/sys/devices/system): leave "
        "--numa-binding out");
  }
  const std::map<int, std::vector<Cpu>> nodes = GroupedBy(topology.cpus, NodeOf);
  const std::vector<int> node_of = NodeOfEachRank(nodes, gpu_nodes, slots);
  std::map<int, int> seen;  // workers placed on a node so far
  for (int rank = 0; rank < slots; ++rank) {
    const std::vector<Cpu>& node = nodes.at(node_of[rank]);
    const int index = seen[node_of[rank]]++;
    if (binding == NumaBinding::kNode) {
      plan[rank] = Ids(node);
    } else if (binding == NumaBinding::kSocket) {
      plan[rank] = SocketsOf(topology, node);
    } else if (binding == NumaBinding::kCoreComplex) {
      plan[rank] = CacheOf(node, index);
    } else {
      const auto workers = std::count(node_of.begin(), node_of.end(), node_of[rank]);
      absl::StatusOr<std::vector<int>> share = ShareOf(node, index, static_cast<int>(workers));
      if (!share.ok()) return share.status();
      plan[rank] = *std::move(share);
    }
  }
  return plan;
}

}  // namespace muster
