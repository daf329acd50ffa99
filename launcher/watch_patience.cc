#include "launcher/watch_patience.h"

#include <algorithm>
#include <chrono>

namespace muster {
namespace {

using namespace std::chrono_literals;

constexpr Duration kFirstWait = 100ms;
constexpr Duration kLongestWait = 5s;
// Agents try again at least every 5 s, and a master waits 10 s for all of them.
constexpr Duration kUntilJobsAreBack = 30s;

}  // namespace

void WatchPatience::Heard() {
  has_heard_ = true;
  lost_at_ = unknown_since_ = kNever;
}

std::optional<Time> WatchPatience::NextTry(Time now, const absl::Status& why) {
  const bool is_gone = absl::IsUnavailable(why) || absl::IsDeadlineExceeded(why);
  const bool is_unknown = is_lost() && absl::IsNotFound(why);
  const bool is_stood_for = is_lost() && absl::IsUnimplemented(why);
  if (!has_heard_ || !(is_gone || is_unknown || is_stood_for)) return std::nullopt;
  if (!is_lost()) {
    lost_at_ = now;
    wait_ = kFirstWait;
  }
  if (!is_unknown) unknown_since_ = kNever;
  if (is_unknown && unknown_since_ == kNever) unknown_since_ = now;
  const bool is_too_long =
      now - lost_at_ >= patience_ || (is_unknown && now - unknown_since_ >= kUntilJobsAreBack);
  if (is_too_long) return std::nullopt;
  const Time next = now + wait_;
  wait_ = std::min(2 * wait_, kLongestWait);
  return next;
}

}  // namespace muster
