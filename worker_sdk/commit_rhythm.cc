#include "worker_sdk/commit_rhythm.h"

#include <algorithm>
#include <chrono>

namespace muster {
namespace {

// A request to drain is heard about so soon, or at the next commit if that is later.
constexpr Duration kBetweenMeetings = std::chrono::milliseconds(20);
// Remembering may cost one part in so many of the time.
constexpr int kShare = 50;
// Steps may become slow all of a sudden.
constexpr int64_t kGrowth = 2, kEveryMax = 1000;

}  // namespace

bool CommitRhythm::Count() {
  ++counted_;
  return --until_meeting_ <= 0;
}

CommitNews CommitRhythm::Tell(Time now, bool leader, bool drain, bool failed) const {
  CommitNews news;
  news.drain = drain;
  news.failed = leader && failed;
  news.remember = leader && (remembered_ == kNever || now - remembered_ >= kShare * cost_);
  if (met_ != kNever) news.commit_ns = (now - met_).count() / std::max<int64_t>(counted_, 1);
  return news;
}

void CommitRhythm::Heard(const CommitNews& news, Time now) {
  const int64_t wanted = kBetweenMeetings.count() / std::max<int64_t>(news.commit_ns, 1);
  const int64_t most = std::min(kEveryMax, every_ * kGrowth);
  every_ = news.commit_ns == 0 ? 1 : std::clamp<int64_t>(wanted, 1, most);
  until_meeting_ = every_;
  counted_ = 0;
  met_ = now;
}

void CommitRhythm::Remembered(Time begin, Time end) {
  cost_ = end - begin;
  remembered_ = end;
}

}  // namespace muster
