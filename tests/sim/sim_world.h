#ifndef MUSTER_TESTS_SIM_SIM_WORLD_H_
#define MUSTER_TESTS_SIM_SIM_WORLD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tests/sim/sim_queue.h"

namespace muster::sim {

// What all parts of one simulation share.
struct SimWorld {
  SimWorld(uint64_t seed, bool with_trace) : random(seed), traces(with_trace) {}

  SimQueue queue;
  SimRandom random;
  Time faults_end{};

  // Set by the first promise that was broken; the simulation stops there.
  std::string violation;
  void Violate(const std::string& what);

  // Lines are only made when somebody wants them: guard what is costly with `traces`.
  const bool traces;
  std::vector<std::string> trace;
  void Trace(const std::string& who, const std::string& what);

  // What went wrong on purpose; judges how the job may end.
  int faults = 0;           // of any kind
  int worker_failures = 0;  // workers that failed by themselves, not for want of their peers
  int fatal_failures = 0;   // of these: programs that cannot be executed
  int master_crashes = 0;   // after which it had forgotten everything
  int drains = 0;
};

}  // namespace muster::sim

#endif  // MUSTER_TESTS_SIM_SIM_WORLD_H_
