#ifndef MUSTER_RENDEZVOUS_ETCD_ELECTION_H_
#define MUSTER_RENDEZVOUS_ETCD_ELECTION_H_

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/event_queue.h"
#include "rendezvous/election_machine.h"
#include "rendezvous/etcd_client.h"
#include "rendezvous/leadership.h"

namespace muster {

// Leadership by a key in etcd, PREFIX/leader. A thread of its own steps the ElectionMachine; the
// calls to etcd are made without waiting.
class EtcdElection final : public Leadership {
 public:
  struct Options {
    std::string prefix;
    Duration lease{};
    uint64_t seed = 0;
  };

  // Campaigns from now on. `clock` and `client` outlive the election; the client is not used for
  // anything that waits for a callback of the listener.
  EtcdElection(Clock* clock, EtcdClient* client, Options options, Listener listener);
  ~EtcdElection() override;

  bool Leads(Time now) const override { return now < Time(Duration(leads_until_.load())); }
  void Serving(const std::string& address) override;
  void StepDown(const std::string& why) override;
  void Resign() override;

 private:
  void Run();
  void Post(election::Event event) { queue_->Push(std::move(event)); }

  void Perform(const election::ReadKey& effect);
  void Perform(const election::WatchKey& effect);
  void Perform(const election::GrantLease& effect);
  void Perform(const election::MakeKey& effect);
  void Perform(const election::RefreshLease& effect);
  void Perform(const election::PublishAddress& effect);
  void Perform(const election::RevokeLease& effect);
  void Perform(const election::Elected& effect);
  void Perform(const election::Lost& effect);
  void Perform(const election::LeaderIs& effect);
  void Perform(const election::Over& effect);

  using Queue = EventQueue<election::Event>;

  Clock* const clock_;
  EtcdClient* const client_;
  const Options options_;
  const std::string key_;
  const Listener listener_;
  ElectionMachine machine_;  // of the thread
  std::atomic<Duration::rep> leads_until_ = Time::min().time_since_epoch().count();
  const std::shared_ptr<Queue> queue_;  // shared with calls, which may end after this object
  std::thread thread_;                  // last: it uses the others
};

// "PREFIX/leader".
std::string EtcdLeaderKey(const std::string& prefix);

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_ETCD_ELECTION_H_
