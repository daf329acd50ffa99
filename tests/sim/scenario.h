#ifndef MUSTER_TESTS_SIM_SCENARIO_H_
#define MUSTER_TESTS_SIM_SCENARIO_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/time.h"
#include "rendezvous/settings.h"
#include "tests/sim/sim_network.h"
#include "tests/sim/sim_store.h"

namespace muster::sim {

enum class FaultKind {
  kWorkerFails,
  kAgentDies,
  kAgentFreezes,
  kPartition,
  kStreamBreaks,
  kMasterDies,
  kMasterFreezes,
  kNodeLeaves,
  kWardenDies,
  kNodeDrained,
  kJobDrained,
  kEtcdCut,
};
inline constexpr int kFaultKinds = static_cast<int>(FaultKind::kEtcdCut) + 1;

const char* FaultName(FaultKind kind);

// How workers behave, whatever happens to their node.
struct WorkerHabits {
  double fails_early = 0;   // probability that a worker fails by itself, until faults_end
  double cannot_start = 0;  // that it cannot be spawned for the moment
  double never_starts = 0;  // that the program cannot be executed
  double ignores_term = 0;  // that only KILL ends it
  double leaves_child = 0;  // that a grandchild outlives it
  double minds_peers = 0;   // that it fails when a peer is gone; else it hangs
  double says_ready = 1;
  double heeds_drain = 1;  // that a group ends at a commit point when it is told to
};

// One simulation: everything that the seed decides beforehand.
struct Scenario {
  uint64_t seed = 0;
  JobSettings settings;
  bool fixed_ranks = false;
  bool is_hosted = false;  // the master lives in the agent of node 0, else on its own
  int candidates = 0;      // masters of whom one is elected through etcd; 0: there is but one
  Duration etcd_lease{};
  std::vector<int> slots;  // by node
  Duration stop_grace{};
  Duration orphan_grace{};
  Duration work{};           // of a complete group
  Duration commit_gap{};     // between its commit points
  Duration faults_end{};     // from the beginning
  Duration launch_spread{};  // the nodes are started within
  Duration fault_gap{};      // mean time between faults; zero: none
  std::array<int, kFaultKinds> fault_weights{};
  double comes_back = 0;  // probability that a node whose agent is gone starts another one
  double tells_last_will = 0;
  Duration freeze_most{};
  SimNetwork::Options network;
  SimStore::Options store;
  WorkerHabits habits;

  int nodes() const { return static_cast<int>(slots.size()); }
  // The master may lose its memory.
  bool forgets() const {
    return !store.exists &&
           (Has(FaultKind::kMasterDies) || (is_hosted && fault_gap > Duration::zero()));
  }
  bool Has(FaultKind kind) const {
    return fault_gap > Duration::zero() && fault_weights[static_cast<int>(kind)] > 0;
  }
  // How long after faults_end everything must have come to its end.
  Duration patience() const;
  std::string ToString() const;
};

Scenario DrawScenario(uint64_t seed);

}  // namespace muster::sim

#endif  // MUSTER_TESTS_SIM_SCENARIO_H_
