#ifndef MUSTER_RENDEZVOUS_ROUND_LIMITS_H_
#define MUSTER_RENDEZVOUS_ROUND_LIMITS_H_

#include <chrono>
#include <cstddef>

#include "base/time.h"

// Numbers of the round machine that no setting changes (docs/RENDEZVOUS.md, docs/EXIT_CODES.md).

namespace muster {

// EX_TEMPFAIL: too few nodes came, or every node has left.
inline constexpr int kExitJoinTimeout = 75;
inline constexpr int kExitRefused = 77;      // EX_NOPERM: another process holds this node's place
inline constexpr int kExitBadSettings = 78;  // EX_CONFIG: this node's settings do not fit the job
inline constexpr int kExitStopped = 143;     // an operator stopped the job: as after SIGTERM

// Agents reconnect at least this often while they have no master.
inline constexpr Duration kReconnectCap = std::chrono::seconds(2);
// A master without memory waits so long for the members of a generation that it heard of.
inline constexpr Duration kRecoveryGrace = 5 * kReconnectCap;
// A stop that lasts no longer needs no explanation beyond the order itself.
inline constexpr Duration kStopUntold = std::chrono::seconds(1);
// A generation that lasted so long was no quick failure.
inline constexpr Duration kGotGoing = std::chrono::seconds(10);
// Replaced incarnations that are remembered for each node.
inline constexpr size_t kRetiredMax = 8;

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_ROUND_LIMITS_H_
