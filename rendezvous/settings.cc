#include "rendezvous/settings.h"

#include <array>
#include <string>

namespace muster {
namespace {

using namespace std::chrono_literals;

const char* FencingText(Fencing fencing) {
  switch (fencing) {
    case Fencing::kToken:
      return "token";
    case Fencing::kStrict:
      return "strict";
  }
  return "unknown";
}

const char* JoinPolicyText(JoinPolicy policy) {
  switch (policy) {
    case JoinPolicy::kNow:
      return "now";
    case JoinPolicy::kCheckpoint:
      return "checkpoint";
    case JoinPolicy::kRestart:
      return "restart";
  }
  return "unknown";
}

std::string NodesText(const JobSettings& settings) {
  const std::string min = std::to_string(settings.nodes_min);
  if (settings.nodes_min == settings.nodes_max) return min;
  return min + ":" + std::to_string(settings.nodes_max);
}

class Difference {
 public:
  void Compare(const char* name, const std::string& job, const std::string& node) {
    if (job == node) return;
    text_ += (text_.empty() ? "" : "; ") + std::string(name) + " is " + job + " in the job and " +
             node + " on this node";
  }
  void Compare(const char* name, int job, int node) {
    Compare(name, std::to_string(job), std::to_string(node));
  }
  void Compare(const char* name, Duration job, Duration node) {
    Compare(name, DurationText(job), DurationText(node));
  }
  std::string text() const { return text_.empty() ? "" : text_ + ": give all nodes the same"; }

 private:
  std::string text_;
};

std::string TooFew(const char* name, int value, int least) {
  if (value >= least) return "";
  return std::string(name) + " is " + std::to_string(value) + ": give " + std::to_string(least) +
         " or more";
}

// `least` is zero or next to it.
std::string OutOfRange(const char* name, Duration value, Duration least) {
  if (value >= least && value <= kLongestTimeout) return "";
  std::string advice = "at most " + DurationText(kLongestTimeout);
  if (value < least) advice = least == Duration::zero() ? "0 or more" : "a time above zero";
  return std::string(name) + " is " + DurationText(value) + ": give " + advice;
}

std::string NodeUnitError(const JobSettings& settings) {
  const int unit = settings.node_unit;
  if (unit < 1) return "--node-unit is " + std::to_string(unit) + ": give 1 or more";
  if (settings.nodes_min % unit == 0 && settings.nodes_max % unit == 0) return "";
  const std::string max =
      settings.nodes_max == settings.nodes_min ? "" : ":" + std::to_string(settings.nodes_max);
  return "--nnodes is " + std::to_string(settings.nodes_min) + max + " and --node-unit is " +
         std::to_string(unit) + ": give multiples of it";
}

}  // namespace

std::string DescribeDifference(const JobSettings& job, const JobSettings& node) {
  Difference difference;
  difference.Compare("--nnodes", NodesText(job), NodesText(node));
  difference.Compare("--max-restarts", job.max_restarts, node.max_restarts);
  difference.Compare("--max-start-failures", job.max_start_failures, node.max_start_failures);
  difference.Compare("--max-restart-delay", job.max_restart_delay, node.max_restart_delay);
  difference.Compare("--fatal-exit-codes", job.fatal_exit_codes.ToString(),
                     node.fatal_exit_codes.ToString());
  difference.Compare("keep_alive_interval of --rdzv-conf", job.keep_alive_interval,
                     node.keep_alive_interval);
  difference.Compare("keep_alive_max_attempt of --rdzv-conf", job.keep_alive_max_attempt,
                     node.keep_alive_max_attempt);
  difference.Compare("--fencing", FencingText(job.fencing), FencingText(node.fencing));
  // The fence is as long as a node keeps its workers without a master.
  if (job.fencing == Fencing::kStrict && node.fencing == Fencing::kStrict) {
    difference.Compare("--master-loss-timeout", job.master_loss_timeout, node.master_loss_timeout);
  }
  difference.Compare("--join-policy", JoinPolicyText(job.join_policy),
                     JoinPolicyText(node.join_policy));
  difference.Compare("--node-unit", job.node_unit, node.node_unit);
  difference.Compare("--max-node-failures", job.max_node_failures, node.max_node_failures);
  difference.Compare("--node-failure-window", job.node_failure_window, node.node_failure_window);
  return difference.text();
}

std::string DescribeError(const JobSettings& settings) {
  if (settings.nodes_min < 1) {
    return "--nnodes is " + NodesText(settings) + ": a job needs at least 1 node";
  }
  if (settings.nodes_max < settings.nodes_min) {
    return "--nnodes is " + NodesText(settings) + ": MIN must not exceed MAX";
  }
  const std::array counts = {
      TooFew("--max-restarts", settings.max_restarts, 0),
      TooFew("--max-start-failures", settings.max_start_failures, 0),
      TooFew("keep_alive_max_attempt of --rdzv-conf", settings.keep_alive_max_attempt, 1),
  };
  for (const std::string& error : counts) {
    if (!error.empty()) return error;
  }
  if (settings.fatal_exit_codes.Contains(0)) {
    return "--fatal-exit-codes has 0: a worker that exits with 0 has not failed";
  }
  constexpr Duration kAboveZero = Duration(1);
  const std::array times = {
      OutOfRange("--stall-timeout", settings.stall_timeout, Duration::zero()),
      OutOfRange("--max-restart-delay", settings.max_restart_delay, Duration::zero()),
      OutOfRange("last_call_timeout of --rdzv-conf", settings.last_call, Duration::zero()),
      OutOfRange("join_timeout of --rdzv-conf", settings.join_timeout, kAboveZero),
      OutOfRange("keep_alive_interval of --rdzv-conf", settings.keep_alive_interval, kAboveZero),
      OutOfRange("--master-loss-timeout", settings.master_loss_timeout, kAboveZero),
      OutOfRange("--exit-barrier-timeout", settings.exit_barrier_timeout, kAboveZero),
  };
  for (const std::string& error : times) {
    if (!error.empty()) return error;
  }
  if (settings.keep_alive_interval > kLongestTimeout / settings.keep_alive_max_attempt) {
    return "keep_alive_interval of --rdzv-conf is " + DurationText(settings.keep_alive_interval) +
           " and keep_alive_max_attempt is " + std::to_string(settings.keep_alive_max_attempt) +
           ": their product may be at most " + DurationText(kLongestTimeout);
  }
  return NodeUnitError(settings);
}

std::string DurationText(Duration duration) {
  struct Unit {
    Duration length;
    const char* name;
  };
  static constexpr std::array kUnits = {
      Unit{1h, "h"}, Unit{1min, "m"}, Unit{1s, "s"}, Unit{1ms, "ms"}, Unit{1us, "us"},
  };
  if (duration == Duration::zero()) return "0s";
  for (const Unit& unit : kUnits) {
    if (duration % unit.length == Duration::zero()) {
      return std::to_string(duration / unit.length) + unit.name;
    }
  }
  return std::to_string(duration.count()) + "ns";
}

}  // namespace muster
