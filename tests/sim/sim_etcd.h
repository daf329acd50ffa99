#ifndef MUSTER_TESTS_SIM_SIM_ETCD_H_
#define MUSTER_TESTS_SIM_SIM_ETCD_H_

#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "rendezvous/election_events.h"
#include "tests/sim/record_store.h"
#include "tests/sim/sim_world.h"

namespace muster::sim {

// An etcd as masters see it: one thing happens after the other there, and each candidate is at the
// far end of a line of its own, which may be cut. A call arrives, is carried out, and its answer
// arrives; or one of the ways is cut, and the caller hears of a failure when its time is up.
class SimEtcd {
 public:
  struct Options {
    int candidates = 0;
    Duration ttl{};      // of the leader's lease; whole seconds
    Duration slowest{};  // longest way to or from it
  };
  using Answer = std::function<void(const election::Event&)>;

  SimEtcd(SimWorld& world, const Options& options);

  // A call of an election, by its effect; as rendezvous/etcd_election.cc makes it. Elected and the
  // like are no calls.
  void Call(int candidate, const election::Effect& effect, Answer answer);

  // As rendezvous/etcd_store.h: only for who leads by this claim.
  void Load(int candidate, int64_t claim, std::function<void(absl::StatusOr<MasterState>)> answer);
  void Write(int candidate, int64_t claim, std::vector<RecordChange> changes,
             std::function<void(absl::Status)> answer);

  // What stands in the leader's key: the number of a candidate that serves; -1: none.
  int leader() const { return key_ ? key_->serves : -1; }

  void Cut(int candidate, Duration duration);
  void HealAll();

 private:
  struct Key {
    int64_t create_revision = 0;
    int64_t lease = 0;
    int serves = -1;
  };
  struct Watch {
    int candidate = 0;
    election::WatchKey call;
    Answer answer;
  };

  Duration Way() { return world_.random.Between(Duration(0), options_.slowest); }
  bool IsCut(int candidate) const;
  void Ask(int candidate, std::function<std::function<void()>()> carry_out,
           std::function<void()> fail);
  election::Event CarryOut(const election::Effect& effect);
  void AddWatch(int candidate, const election::WatchKey& call, const Answer& answer);
  election::KeyIs KeyNow(uint64_t ticket, int64_t revision) const;
  void Tell(uint64_t watch);
  void Refresh(int64_t lease);
  void End(int64_t lease);
  void Changed();

  SimWorld& world_;
  const Options options_;
  int64_t revision_ = 1;
  int64_t changed_at_ = 1;  // the revision of the key's latest change
  std::optional<Key> key_;
  std::map<int64_t, Time> leases_;  // until when they hold
  int64_t last_lease_ = 0;
  std::map<uint64_t, Watch> watches_;
  uint64_t last_watch_ = 0;
  KeptRecords kept_;
  int64_t last_claim_ = 0;  // that wrote
  std::vector<Time> cut_until_;
};

}  // namespace muster::sim

#endif  // MUSTER_TESTS_SIM_SIM_ETCD_H_
