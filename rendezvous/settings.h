#ifndef MUSTER_RENDEZVOUS_SETTINGS_H_
#define MUSTER_RENDEZVOUS_SETTINGS_H_

#include <chrono>
#include <string>

#include "base/time.h"
#include "rendezvous/exit_code_set.h"

namespace muster {

// What happens to workers that a lost node may still run (docs/RENDEZVOUS.md, Fencing).
enum class Fencing { kToken, kStrict };

// When a newcomer below MAX is taken in: at once, at the next commit point, or when a generation
// ends anyway.
enum class JoinPolicy { kNow, kCheckpoint, kRestart };

// The longest time a setting may name: ten years. Deadlines far in the future must not overflow.
inline constexpr Duration kLongestTimeout = std::chrono::hours(24 * 3650);

// What all nodes of a job must agree on. A node that differs is refused with the difference spelled
// out.
struct JobSettings {
  int nodes_min = 1;
  int nodes_max = 1;
  int max_restarts = 0;          // failures that the job survives
  int max_start_failures = 0;    // quick failures in a row that end the job; 0: no such limit
  ExitCodeSet fatal_exit_codes;  // a worker that ends with one of these ends the job
  // A worker that reported STEP and then nothing for so long is killed; 0: it may be silent.
  Duration stall_timeout{};
  Duration last_call = std::chrono::seconds(30);      // extra wait for more nodes once MIN are in
  Duration join_timeout = std::chrono::seconds(600);  // longest wait for MIN nodes
  Duration keep_alive_interval = std::chrono::seconds(5);
  int keep_alive_max_attempt = 3;  // silent intervals after which a member is lost
  // An agent without a master keeps its workers so long.
  Duration master_loss_timeout = std::chrono::hours(1);
  // A hosting node waits so long for acknowledgements of the verdict.
  Duration exit_barrier_timeout = std::chrono::seconds(300);
  Fencing fencing = Fencing::kToken;
  JoinPolicy join_policy = JoinPolicy::kNow;

  // Silence that makes a member lost.
  Duration lease() const { return keep_alive_interval * keep_alive_max_attempt; }

  // With strict fencing: how long workers may outlive the last word of their node, plus 10 % for
  // clocks that run at different speeds.
  Duration strict_fence() const { return master_loss_timeout + master_loss_timeout / 10; }

  bool operator==(const JobSettings&) const = default;
};

// "" when equal, else each difference: "max_restarts is 3 in the job and 0 on this node; ...".
std::string DescribeDifference(const JobSettings& job, const JobSettings& node);

// "" when usable, else one sentence that names the setting: "nodes_min is 3 and ...".
std::string DescribeError(const JobSettings& settings);

// "30s", "1h", "1500ms": the largest unit that divides it.
std::string DurationText(Duration duration);

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_SETTINGS_H_
