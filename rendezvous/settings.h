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

// The longest time a setting may name: a year. Deadlines far in the future must not overflow.
inline constexpr Duration kLongestTimeout = std::chrono::hours(24 * 366);

// What the nodes of a job bring along. On those from `nodes_min` to `join_policy` they must agree:
// a node that differs is refused with the difference spelled out. Where the others differ, the
// master goes by the job's first node, and each agent by its own.
struct JobSettings {
  int nodes_min = 1;
  int nodes_max = 1;
  int max_restarts = 0;        // failures that the job survives
  int max_start_failures = 0;  // quick failures in a row that end the job; 0: no such limit
  // The longest wait before a restart after quick failures in a row; 0: restarts are immediate.
  Duration max_restart_delay = std::chrono::seconds(30);
  ExitCodeSet fatal_exit_codes;  // a worker that ends with one of these ends the job
  Duration keep_alive_interval = std::chrono::seconds(5);
  int keep_alive_max_attempt = 3;  // silent intervals after which a member is lost
  Fencing fencing = Fencing::kToken;
  // An agent without a master keeps its workers so long. Must be the same with strict fencing.
  Duration master_loss_timeout = std::chrono::hours(1);
  JoinPolicy join_policy = JoinPolicy::kNow;

  Duration last_call = std::chrono::seconds(30);      // extra wait for more nodes once MIN are in
  Duration join_timeout = std::chrono::seconds(600);  // longest wait for MIN nodes
  // A hosting node waits so long for acknowledgements of the verdict.
  Duration exit_barrier_timeout = std::chrono::seconds(300);
  // A worker that reported STEP and then nothing for so long is killed; 0: it may be silent.
  Duration stall_timeout{};

  int node_unit = 1;          // a generation has a multiple of so many nodes
  int max_node_failures = 0;  // within the window: others are taken before it; 0: no such limit
  Duration node_failure_window = std::chrono::hours(1);

  // How many of so many nodes a generation takes: a multiple of the unit, at most nodes_max.
  int usable(int nodes) const {
    const int most = nodes < nodes_max ? nodes : nodes_max;
    return most - most % node_unit;
  }

  // Silence that makes a member lost.
  Duration lease() const { return keep_alive_interval * keep_alive_max_attempt; }

  // With strict fencing: how long workers may outlive the last word of their node, plus 10 % for
  // clocks that run at different speeds.
  Duration strict_fence() const { return master_loss_timeout + master_loss_timeout / 10; }

  bool operator==(const JobSettings&) const = default;
};

// "" when the nodes agree on what they must, else each difference and what to do, by the names of
// the options: "--max-restarts is 3 in the job and 0 on this node; ...: give all nodes the same".
std::string DescribeDifference(const JobSettings& job, const JobSettings& node);

// "" when usable, else one sentence that names the option: "--nnodes is 3:2: MIN must ...".
std::string DescribeError(const JobSettings& settings);

// "30s", "1h", "1500ms": the largest unit that divides it.
std::string DurationText(Duration duration);

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_SETTINGS_H_
