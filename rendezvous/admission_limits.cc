#include "rendezvous/admission_limits.h"

#include <algorithm>
#include <chrono>

namespace muster {
namespace {

std::string Count(size_t number, const std::string& things) {
  return std::to_string(number) + " " + things;
}

}  // namespace

StreamGate::StreamGate(const MasterLimits& limits)
    : limits_(limits), tokens_(limits.streams_per_second) {}

std::optional<std::string> StreamGate::Enter(Time now, size_t open) {
  if (limits_.streams_max != 0 && open >= limits_.streams_max) {
    return "this master has " + Count(open, "agents") + " and takes no more (--max-agents)";
  }
  if (limits_.streams_per_second == 0) return std::nullopt;
  const double rate = limits_.streams_per_second;
  const std::chrono::duration<double> passed = now - filled_at_.value_or(now);
  tokens_ = std::min(rate, tokens_ + passed.count() * rate);
  filled_at_ = now;
  if (tokens_ < 1) {
    return "more than " + Count(limits_.streams_per_second, "agents") +
           " a second want to join (--joins-per-second)";
  }
  tokens_ -= 1;
  return std::nullopt;
}

}  // namespace muster
