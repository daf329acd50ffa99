#ifndef MUSTER_AGENT_NUMA_PLAN_H_
#define MUSTER_AGENT_NUMA_PLAN_H_

#include <vector>

#include "absl/status/statusor.h"

// Which CPUs each worker of a node runs on. Pure: the topology is an argument
// (agent/topology_sysfs.h reads it).

namespace muster {

// What a worker is bound to; torchrun's --numa-binding.
enum class NumaBinding {
  kNone,
  kNode,         // all CPUs of its NUMA node
  kSocket,       // all CPUs of its socket
  kExclusive,    // its share of the physical cores of its NUMA node
  kCoreComplex,  // the CPUs of one L3 cache of its NUMA node
};

// One logical CPU.
struct Cpu {
  int id = 0;
  int core = 0;    // the lowest CPU of the same physical core
  int l3 = 0;      // the lowest CPU that shares the L3 cache; without one: that of its node
  int node = 0;    // NUMA
  int socket = 0;  // -1: the kernel does not say

  bool operator==(const Cpu&) const = default;
};

struct Topology {
  std::vector<Cpu> cpus;  // those that this process may use, by id
};

// For each local rank the CPUs that it runs on, ascending. A worker's NUMA node is that of its GPU:
// `gpu_nodes` has one entry for each GPU, in the order of the local ranks; more workers than GPUs
// begin again at the first. Where there is no GPU, or the node of a GPU is not known (-1) or has no
// CPU for us, the local ranks go round the NUMA nodes: rank 0 on the first, 1 on the second, ...
//
//  - kExclusive: workers of one NUMA node share its physical cores evenly; the lower local ranks
//    get one more where that does not come out.
//  - kCoreComplex: workers of one NUMA node go round its L3 caches, the largest first.
//
// kNone: an empty list for each. FailedPrecondition, in one line: kExclusive, and a node has fewer
// cores than workers; no CPU is known at all.
absl::StatusOr<std::vector<std::vector<int>>> PlanCpus(NumaBinding binding,
                                                       const Topology& topology,
                                                       const std::vector<int>& gpu_nodes,
                                                       int slots);

}  // namespace muster

#endif  // MUSTER_AGENT_NUMA_PLAN_H_
