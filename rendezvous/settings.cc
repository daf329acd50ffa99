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

class Difference {
 public:
  void Compare(const char* name, const std::string& job, const std::string& node) {
    if (job == node) return;
    if (!text_.empty()) text_ += "; ";
    text_ += std::string(name) + " is " + job + " in the job and " + node + " on this node";
  }
  void Compare(const char* name, int job, int node) {
    Compare(name, std::to_string(job), std::to_string(node));
  }
  void Compare(const char* name, Duration job, Duration node) {
    Compare(name, DurationText(job), DurationText(node));
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::string NotPositive(const char* name, Duration value) {
  if (value > Duration::zero()) return "";
  return std::string(name) + " is " + DurationText(value) + ": give a time above zero";
}

std::string TooLong(const char* name, Duration value) {
  if (value <= kLongestTimeout) return "";
  return std::string(name) + " is " + DurationText(value) + ": give at most " +
         DurationText(kLongestTimeout);
}

}  // namespace

std::string DescribeDifference(const JobSettings& job, const JobSettings& node) {
  Difference difference;
  difference.Compare("nodes_min", job.nodes_min, node.nodes_min);
  difference.Compare("nodes_max", job.nodes_max, node.nodes_max);
  difference.Compare("max_restarts", job.max_restarts, node.max_restarts);
  difference.Compare("max_start_failures", job.max_start_failures, node.max_start_failures);
  difference.Compare("fatal_exit_codes", job.fatal_exit_codes.ToString(),
                     node.fatal_exit_codes.ToString());
  difference.Compare("stall_timeout", job.stall_timeout, node.stall_timeout);
  difference.Compare("last_call", job.last_call, node.last_call);
  difference.Compare("join_timeout", job.join_timeout, node.join_timeout);
  difference.Compare("keep_alive_interval", job.keep_alive_interval, node.keep_alive_interval);
  difference.Compare("keep_alive_max_attempt", job.keep_alive_max_attempt,
                     node.keep_alive_max_attempt);
  difference.Compare("master_loss_timeout", job.master_loss_timeout, node.master_loss_timeout);
  difference.Compare("exit_barrier_timeout", job.exit_barrier_timeout, node.exit_barrier_timeout);
  difference.Compare("fencing", FencingText(job.fencing), FencingText(node.fencing));
  difference.Compare("join_policy", JoinPolicyText(job.join_policy),
                     JoinPolicyText(node.join_policy));
  return difference.text();
}

std::string DescribeError(const JobSettings& settings) {
  if (settings.nodes_min < 1) {
    return "nodes_min is " + std::to_string(settings.nodes_min) + ": a job needs at least 1 node";
  }
  if (settings.nodes_max < settings.nodes_min) {
    return "nodes_min is " + std::to_string(settings.nodes_min) + " and nodes_max is " +
           std::to_string(settings.nodes_max) + ": MIN must not exceed MAX";
  }
  if (settings.max_restarts < 0) {
    return "max_restarts is " + std::to_string(settings.max_restarts) + ": give 0 or more";
  }
  if (settings.max_start_failures < 0) {
    return "max_start_failures is " + std::to_string(settings.max_start_failures) +
           ": give 0 or more";
  }
  if (settings.fatal_exit_codes.Contains(0)) {
    return "fatal_exit_codes has 0: a worker that exits with 0 has not failed";
  }
  if (settings.stall_timeout < Duration::zero()) {
    return "stall_timeout is " + DurationText(settings.stall_timeout) + ": give 0 or more";
  }
  if (settings.keep_alive_max_attempt < 1) {
    return "keep_alive_max_attempt is " + std::to_string(settings.keep_alive_max_attempt) +
           ": give 1 or more";
  }
  if (settings.last_call < Duration::zero()) {
    return "last_call is " + DurationText(settings.last_call) + ": give 0 or more";
  }
  const std::array errors = {
      NotPositive("join_timeout", settings.join_timeout),
      NotPositive("keep_alive_interval", settings.keep_alive_interval),
      NotPositive("master_loss_timeout", settings.master_loss_timeout),
      NotPositive("exit_barrier_timeout", settings.exit_barrier_timeout),
  };
  for (const std::string& error : errors) {
    if (!error.empty()) return error;
  }
  const std::array limits = {
      TooLong("last_call", settings.last_call),
      TooLong("stall_timeout", settings.stall_timeout),
      TooLong("join_timeout", settings.join_timeout),
      TooLong("master_loss_timeout", settings.master_loss_timeout),
      TooLong("exit_barrier_timeout", settings.exit_barrier_timeout),
  };
  for (const std::string& error : limits) {
    if (!error.empty()) return error;
  }
  if (settings.keep_alive_interval > kLongestTimeout / settings.keep_alive_max_attempt) {
    return "keep_alive_interval is " + DurationText(settings.keep_alive_interval) +
           " and keep_alive_max_attempt is " + std::to_string(settings.keep_alive_max_attempt) +
           ": their product may be at most " + DurationText(kLongestTimeout);
  }
  if (settings.join_policy == JoinPolicy::kCheckpoint) {
    return "join_policy checkpoint is not available yet: use now or restart";
  }
  return "";
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
