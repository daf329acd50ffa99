#ifndef MUSTER_AGENT_SUPERVISOR_LIMITS_H_
#define MUSTER_AGENT_SUPERVISOR_LIMITS_H_

#include <chrono>
#include <cstddef>

#include "base/time.h"

// What the supervisor machine takes as given; what users may choose is in SupervisorOptions.

namespace muster {

// docs/EXIT_CODES.md: no master to be had, what should not happen, what cannot work here.
inline constexpr int kExitNoMaster = 69;
inline constexpr int kExitBroken = 70;
inline constexpr int kExitConfig = 78;

// How long a process may stay after SIGKILL (uninterruptible sleep) before the agent goes without
// it.
inline constexpr Duration kKillPatience = std::chrono::seconds(10);
// Noticing a deadline so much too late means that the agent did not run.
inline constexpr Duration kOverslept = std::chrono::seconds(1);
// A signal that comes twice within this time (a scheduler that signals every process and the leader
// too) counts once.
inline constexpr Duration kSameSignal = std::chrono::seconds(1);
// An agent that comes so much too late to its deadline was stopped meanwhile, and what the workers
// reported in that time has not been heard yet: it judges nobody by it.
inline constexpr Duration kFrozen = std::chrono::seconds(1);
// How much of a STEP is quoted.
inline constexpr size_t kStepBytesMax = 32;
// How long a leaving node waits for its farewell to be delivered.
inline constexpr Duration kFarewell = std::chrono::seconds(2);
inline constexpr Duration kFirstWaitNote = std::chrono::seconds(5);
inline constexpr Duration kNextWaitNote = std::chrono::seconds(10);

}  // namespace muster

#endif  // MUSTER_AGENT_SUPERVISOR_LIMITS_H_
