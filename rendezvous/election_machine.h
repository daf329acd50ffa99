#ifndef MUSTER_RENDEZVOUS_ELECTION_MACHINE_H_
#define MUSTER_RENDEZVOUS_ELECTION_MACHINE_H_

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "base/time.h"
#include "rendezvous/election_events.h"

namespace muster {

// One candidate of an election by a key that lives as long as the lease of its owner: whoever makes
// the key while it is not there leads. Decides when to campaign, when to refresh the lease, and
// when this candidate leads no longer. Pure and single-threaded; `now` never decreases.
//
// A lease cannot have run out before its time to live has passed since the refresh was *sent*, so
// that moment, less a fifth for clocks of different speed and for stopping, is what a leader
// trusts. A candidate that only follows holds no lease.
class ElectionMachine {
 public:
  // `seed` feeds the jitter of the back-off between looks at an etcd that does not answer.
  explicit ElectionMachine(uint64_t seed)
      : random_(static_cast<std::minstd_rand::result_type>(seed)) {}

  using Effects = std::vector<election::Effect>;
  Effects Step(Time now, const election::Event& event);

  // When Step must be called with TimeCame.
  Time NextDeadline() const;

  bool leads() const { return phase_ == Phase::kLeading; }
  // Until when this candidate may act as the leader if it hears nothing more; Time::min(): it does
  // not lead.
  Time leads_until() const { return leads() ? trusted_until_ : Time::min(); }
  bool over() const { return phase_ == Phase::kOver; }

 private:
  enum class Phase { kIdle, kLooking, kFollowing, kCampaigning, kLeading, kResigning, kOver };

  void On(const election::Begin& event);
  void On(const election::KeyIs& event);
  void On(const election::LeaseGranted& event);
  void On(const election::LeaseIs& event);
  void On(const election::Published& event);
  void On(const election::Revoked& event);
  void On(const election::Failed& event);
  void On(const election::ServingAt& event);
  void On(const election::StepDownAsked& event);
  void On(const election::ResignAsked& event);
  void On(const election::TimeCame& event);

  void Look();
  void LookIn(Duration delay);
  void Watch(int64_t revision);
  void CheckOwnKey(const election::KeyIs& event);
  void Campaign();
  void Follow(const election::KeyIs& event);
  void Lead(const election::KeyIs& event);
  void Trust(Duration ttl);
  void Publish();
  void Lose(const std::string& why);
  void FreeLease();
  bool IsOurs(const LeaderKey& key) const { return lease_ != 0 && key.lease == lease_; }

  uint64_t Call();  // a ticket for a call that is waited for from now on
  Duration BackOff();
  void Do(election::Effect effect) { effects_.push_back(std::move(effect)); }

  std::minstd_rand random_;
  Phase phase_ = Phase::kIdle;
  uint64_t last_ticket_ = 0;
  uint64_t call_ = 0;  // the tickets that are waited for; 0: none
  uint64_t watch_ = 0;
  uint64_t publish_ = 0;
  Time called_at_{};
  int failures_ = 0;  // of looking, in a row

  int64_t lease_ = 0;  // ours; 0: none
  Time trusted_until_{};
  int64_t create_revision_ = 0;  // of our key, while leading
  std::string address_;          // where we serve; empty: not yet

  Time look_at_ = kNever;
  Time refresh_at_ = kNever;
  Time watch_at_ = kNever;
  Time publish_at_ = kNever;
  Time resign_at_ = kNever;

  Time now_{};       // of the step in progress
  Effects effects_;  // of the step in progress
};

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_ELECTION_MACHINE_H_
