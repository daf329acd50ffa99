#include "rendezvous/election_machine.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace muster {
namespace {

using namespace std::chrono_literals;

constexpr Duration kBackOffFirst = 100ms;
constexpr Duration kBackOffMost = 2s;
// A leader's calls, which have no time to lose.
constexpr Duration kRetry = 250ms;
// Whoever has just lost lets the others try first.
constexpr Duration kAfterLoss = 1s;
constexpr Duration kResignTime = 1s;

constexpr int kMarginShare = 5;   // of the time to live, that is not made use of
constexpr int kRefreshShare = 3;  // of the time to live, after which it is refreshed

}  // namespace

ElectionMachine::Effects ElectionMachine::Step(Time now, const election::Event& event) {
  now_ = now;
  effects_.clear();
  if (phase_ == Phase::kLeading && now >= trusted_until_) {
    Lose("etcd has not confirmed the lease in time");
  }
  if (phase_ != Phase::kOver) std::visit([this](const auto& kind) { On(kind); }, event);
  return std::exchange(effects_, {});
}

Time ElectionMachine::NextDeadline() const {
  switch (phase_) {
    case Phase::kIdle:
    case Phase::kFollowing:
    case Phase::kCampaigning:
    case Phase::kOver:
      return kNever;
    case Phase::kLooking:
      return look_at_;
    case Phase::kLeading:
      return std::min({trusted_until_, refresh_at_, watch_at_, publish_at_});
    case Phase::kResigning:
      return resign_at_;
  }
  return kNever;
}

void ElectionMachine::On(const election::Begin&) {
  if (phase_ == Phase::kIdle) Look();
}

void ElectionMachine::On(const election::KeyIs& event) {
  if (event.ticket != call_ && event.ticket != watch_) return;
  (event.ticket == call_ ? call_ : watch_) = 0;
  failures_ = 0;
  switch (phase_) {
    case Phase::kLooking:
    case Phase::kFollowing:
    case Phase::kCampaigning:
      if (!event.key.has_value()) return Campaign();
      if (IsOurs(*event.key) && now_ < trusted_until_) return Lead(event);
      return Follow(event);
    case Phase::kLeading:
      return CheckOwnKey(event);
    case Phase::kIdle:
    case Phase::kResigning:
    case Phase::kOver:
      return;
  }
}

void ElectionMachine::CheckOwnKey(const election::KeyIs& event) {
  if (event.key.has_value() && event.key->create_revision == create_revision_) {
    return Watch(event.revision);
  }
  Lose(event.key.has_value() ? "another master was elected" : "the leader's key was removed");
}

void ElectionMachine::On(const election::LeaseGranted& event) {
  if (event.ticket != call_ || phase_ != Phase::kCampaigning) {
    Do(election::RevokeLease{0, event.lease});
    return;
  }
  lease_ = event.lease;
  Trust(event.ttl);
  Do(election::MakeKey{Call(), lease_});
}

void ElectionMachine::On(const election::LeaseIs& event) {
  if (event.ticket != call_ || phase_ != Phase::kLeading) return;
  call_ = 0;
  if (event.ttl == Duration::zero()) return Lose("the lease has run out");
  Trust(event.ttl);
}

void ElectionMachine::On(const election::Published& event) {
  if (event.ticket == publish_) publish_ = 0;
}

void ElectionMachine::On(const election::Revoked& event) {
  if (phase_ == Phase::kResigning && event.ticket == call_) {
    phase_ = Phase::kOver;
    Do(election::Over{});
  }
}

void ElectionMachine::On(const election::Failed& event) {
  if (event.ticket == 0) return;
  if (phase_ == Phase::kResigning) return On(election::Revoked{event.ticket});
  const bool leads = phase_ == Phase::kLeading;
  if (event.ticket == call_) {
    call_ = 0;
    if (leads) {
      refresh_at_ = now_ + kRetry;
    } else {
      Do(election::LeaderIs{"", event.detail});
      LookIn(BackOff());
    }
  } else if (event.ticket == watch_) {
    watch_ = 0;
    if (leads) {
      watch_at_ = now_ + kRetry;
    } else {
      LookIn(BackOff());  // who leads is not known to have changed
    }
  } else if (event.ticket == publish_) {
    publish_ = 0;
    publish_at_ = now_ + kRetry;
  }
}

void ElectionMachine::On(const election::ServingAt& event) {
  if (phase_ != Phase::kLeading) return;
  address_ = event.address;
  Publish();
}

void ElectionMachine::On(const election::StepDownAsked& event) {
  if (phase_ == Phase::kLeading) Lose(event.why);
}

void ElectionMachine::On(const election::ResignAsked&) {
  watch_ = publish_ = 0;
  if (lease_ == 0) {
    phase_ = Phase::kOver;
    Do(election::Over{});
    return;
  }
  phase_ = Phase::kResigning;
  resign_at_ = now_ + kResignTime;
  Do(election::RevokeLease{Call(), lease_});
}

void ElectionMachine::On(const election::TimeCame&) {
  if (phase_ == Phase::kResigning && now_ >= resign_at_) {
    phase_ = Phase::kOver;
    Do(election::Over{});
  }
  if (phase_ == Phase::kLooking && now_ >= look_at_) Look();
  if (phase_ != Phase::kLeading) return;
  if (now_ >= refresh_at_) {
    refresh_at_ = kNever;
    Do(election::RefreshLease{Call(), lease_});
  }
  if (now_ >= watch_at_) {
    watch_at_ = kNever;
    watch_ = ++last_ticket_;
    Do(election::ReadKey{watch_});
  }
  if (now_ >= publish_at_) Publish();
}

void ElectionMachine::Look() {
  phase_ = Phase::kLooking;
  look_at_ = kNever;
  watch_ = 0;
  Do(election::ReadKey{Call()});
}

void ElectionMachine::LookIn(Duration delay) {
  phase_ = Phase::kLooking;
  call_ = watch_ = 0;
  look_at_ = now_ + delay;
}

void ElectionMachine::Watch(int64_t revision) {
  watch_ = ++last_ticket_;
  Do(election::WatchKey{watch_, revision});
}

void ElectionMachine::Campaign() {
  phase_ = Phase::kCampaigning;
  watch_ = 0;
  Do(election::LeaderIs{});
  if (lease_ != 0 && now_ < trusted_until_) {
    Do(election::MakeKey{Call(), lease_});
    return;
  }
  FreeLease();
  Do(election::GrantLease{Call()});
}

// A key of our own lease that is not to be trusted any more is another one's, too: it goes with the
// lease.
void ElectionMachine::Follow(const election::KeyIs& event) {
  phase_ = Phase::kFollowing;
  Do(election::LeaderIs{IsOurs(*event.key) ? "" : event.key->address, ""});
  FreeLease();
  Watch(event.revision);
}

void ElectionMachine::Lead(const election::KeyIs& event) {
  phase_ = Phase::kLeading;
  call_ = publish_ = 0;
  create_revision_ = event.key->create_revision;
  address_.clear();
  watch_at_ = publish_at_ = kNever;
  Do(election::Elected{create_revision_});
  Watch(event.revision);
}

void ElectionMachine::Trust(Duration ttl) {
  trusted_until_ = called_at_ + ttl - ttl / kMarginShare;
  refresh_at_ = std::max(now_, called_at_ + ttl / kRefreshShare);
}

void ElectionMachine::Publish() {
  publish_at_ = kNever;
  publish_ = ++last_ticket_;
  Do(election::PublishAddress{publish_, create_revision_, lease_, address_});
}

void ElectionMachine::Lose(const std::string& why) {
  publish_ = 0;
  Do(election::Lost{why});
  FreeLease();
  LookIn(kAfterLoss);
}

void ElectionMachine::FreeLease() {
  if (lease_ != 0) Do(election::RevokeLease{0, std::exchange(lease_, 0)});
}

uint64_t ElectionMachine::Call() {
  called_at_ = now_;
  return call_ = ++last_ticket_;
}

Duration ElectionMachine::BackOff() {
  const Duration whole = std::min(kBackOffMost, kBackOffFirst * (1 << std::min(failures_, 10)));
  ++failures_;
  // Half of it fixed, half of it random, so that many candidates do not come back in step.
  return whole / 2 +
         Duration(std::uniform_int_distribution<Duration::rep>(0, (whole / 2).count())(random_));
}

}  // namespace muster
