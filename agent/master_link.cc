#include "agent/master_link.h"

#include <algorithm>
#include <utility>

namespace muster {
namespace {

constexpr Duration kBackOffFirst = std::chrono::milliseconds(100);
constexpr Duration kBackOffMost = std::chrono::seconds(2);
constexpr Duration kForeignPatience = std::chrono::seconds(10);
constexpr Duration kSilentPatience = std::chrono::seconds(30);
constexpr int kRefusalsMax = 3;
constexpr Duration kRefusalMemory = std::chrono::minutes(1);

}  // namespace

MasterLink::MasterLink(const JobSettings& settings, bool heartbeats, uint64_t seed)
    : lease_(settings.lease()),
      interval_(settings.keep_alive_interval),
      heartbeats_(heartbeats),
      random_(static_cast<std::minstd_rand::result_type>(seed)) {}

void MasterLink::Opened(Time now) {
  state_ = State::kOpen;
  reopen_at_ = kNever;
  heard_on_this_stream_ = false;
  unacknowledged_.clear();
  unacknowledged_.push_back({0, now});
  heartbeat_at_ = heartbeats_ ? now + interval_ : kNever;
}

void MasterLink::Heard(Time now) {
  if (state_ != State::kOpen) return;
  attempts_ = 0;
  has_heard_ = true;
  if (heard_on_this_stream_) return;
  heard_on_this_stream_ = true;
  // Any first message answers the Hello.
  Acknowledged(0);
}

void MasterLink::Acknowledged(uint64_t sequence) {
  while (!unacknowledged_.empty() && unacknowledged_.front().sequence <= sequence) {
    vouched_at_ = std::max(vouched_at_, unacknowledged_.front().at);
    unacknowledged_.pop_front();
  }
}

void MasterLink::Lost(Time now, Obstacle obstacle) {
  if (state_ == State::kClosed) return;
  if (obstacle != std::exchange(obstacle_, obstacle)) obstacle_since_ = now;
  if (obstacle == Obstacle::kRefused) {
    refusals_ = now - refused_at_ < kRefusalMemory ? refusals_ + 1 : 1;
    refused_at_ = now;
  }
  state_ = State::kBackingOff;
  heartbeat_at_ = kNever;
  unacknowledged_.clear();
  const Duration whole = std::min(kBackOffMost, kBackOffFirst * (1 << std::min(attempts_, 10)));
  ++attempts_;
  // Half of it fixed, half of it random, so that the agents of a dead master do not come back in
  // step.
  const double share = std::uniform_real_distribution<double>(0.5, 1.0)(random_);
  reopen_at_ = now + std::chrono::duration_cast<Duration>(whole * share);
}

void MasterLink::Close() {
  state_ = State::kClosed;
  heartbeat_at_ = kNever;
  reopen_at_ = kNever;
  unacknowledged_.clear();
}

MasterLink::Action MasterLink::Due(Time now) const {
  if (now >= reopen_at_) return Action::kOpen;
  if (is_silent(now)) return Action::kOpen;
  if (now >= heartbeat_at_) return Action::kHeartbeat;
  return Action::kNone;
}

bool MasterLink::is_silent(Time now) const {
  return heartbeats_ && !unacknowledged_.empty() && now >= unacknowledged_.front().at + lease_;
}

bool MasterLink::is_blocked(Time now, bool has_workers) const {
  if (has_heard_) {
    const bool is_over = heard_on_this_stream_ || !has_workers;
    return obstacle_ == Obstacle::kRefused && refusals_ >= kRefusalsMax && is_over;
  }
  switch (obstacle_) {
    case Obstacle::kNone:
      return false;
    case Obstacle::kForbidden:
    case Obstacle::kRefused:
      return true;
    case Obstacle::kForeign:
      return now >= obstacle_since_ + kForeignPatience;
    case Obstacle::kSilent:
      return now >= obstacle_since_ + std::max(kSilentPatience, 2 * lease_);
  }
  return false;
}

uint64_t MasterLink::NextSequence(Time now) {
  heartbeat_at_ = now + interval_;
  unacknowledged_.push_back({++sequence_, now});
  return sequence_;
}

Time MasterLink::NextDeadline() const {
  Time next = std::min(reopen_at_, heartbeat_at_);
  if (heartbeats_ && !unacknowledged_.empty()) {
    next = std::min(next, unacknowledged_.front().at + lease_);
  }
  return next;
}

}  // namespace muster
