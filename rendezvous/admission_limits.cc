#include "rendezvous/admission_limits.h"

#include <algorithm>
#include <chrono>

#include "rendezvous/round_limits.h"

namespace muster {
namespace {

std::string Count(size_t number, const std::string& thing) {
  return std::to_string(number) + " " + thing + (number == 1 ? "" : "s");
}

}  // namespace

std::optional<NoRoom> NoRoomFor(const MasterLimits& limits, const MasterLoad& load,
                                const Hello& hello) {
  if (hello.attached_before || hello.running.phase != WorkersPhase::kNone) return std::nullopt;
  const auto refuse = [&hello](int exit_code, const std::string& why) {
    return NoRoom{{ReasonCode::kNoRoom, hello.node_id, 0, 0, why}, exit_code};
  };
  const auto wanted = static_cast<size_t>(std::max(hello.settings.nodes_max, 0));
  if (limits.nodes_max != 0 && wanted > limits.nodes_max) {
    return refuse(kExitBadSettings,
                  "--nnodes asks for up to " + Count(wanted, "node") + ", and this master takes " +
                      std::to_string(limits.nodes_max) + " in a job (--max-nodes): give fewer");
  }
  if (limits.jobs_max != 0 && load.opens_job && load.jobs >= limits.jobs_max) {
    return refuse(kExitJoinTimeout, "this master has " + Count(load.jobs, "job") +
                                        " and takes no more (--max-jobs): try again later");
  }
  if (limits.nodes_max != 0 && !load.is_of_them && load.nodes >= limits.nodes_max) {
    return refuse(kExitJoinTimeout, "the job has " + Count(load.nodes, "node") +
                                        " and gets no more (--max-nodes): try again later");
  }
  return std::nullopt;
}

StreamGate::StreamGate(const MasterLimits& limits)
    : limits_(limits), tokens_(limits.streams_per_second) {}

std::optional<std::string> StreamGate::Enter(Time now, size_t open) {
  if (limits_.streams_max != 0 && open >= limits_.streams_max) {
    return "this master has " + Count(open, "agent") + " and takes no more (--max-agents)";
  }
  if (limits_.streams_per_second == 0) return std::nullopt;
  const double rate = limits_.streams_per_second;
  const std::chrono::duration<double> passed = now - filled_at_.value_or(now);
  tokens_ = std::min(rate, tokens_ + passed.count() * rate);
  filled_at_ = now;
  if (tokens_ < 1) {
    return "more than " + Count(limits_.streams_per_second, "agent") +
           " a second want to join (--joins-per-second)";
  }
  tokens_ -= 1;
  return std::nullopt;
}

}  // namespace muster
