#ifndef MUSTER_RENDEZVOUS_ELECTION_FINDER_H_
#define MUSTER_RENDEZVOUS_ELECTION_FINDER_H_

#include <functional>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "rendezvous/elected_master.h"
#include "rendezvous/master_finder.h"

namespace muster {

// The master that the agents of a job elect among themselves through etcd. This agent is a
// candidate from the first Find on.
class ElectionFinder final : public MasterFinder {
 public:
  ElectionFinder(Clock* clock, ClusterOptions options);

  // Waits for a master to be elected, for connect_timeout at most.
  absl::StatusOr<Found> Find(const Resolver& resolve, int tries, int cancel_fd) override;
  void PassOver() override;
  int choices() const override { return 2; }  // the leader, and the one after it
  void Cancel() override;
  bool TellWhenIdle(std::function<void()> callback) override;
  void Close() override;

 private:
  absl::Status BeCandidate(const Resolver& resolve);
  absl::StatusOr<std::string> AwaitLeader(Time deadline);
  absl::StatusOr<Found> Reach(const std::string& leader, const Resolver& resolve, int cancel_fd);
  absl::StatusOr<std::unique_ptr<MasterServer>> StartServer(const MasterLoop::Options& loop);
  std::string OwnHost(const Resolver& resolve) const;
  void OnLeader(const std::string& address, const std::string& problem);

  Clock* const clock_;
  const ClusterOptions options_;
  std::string own_host_;  // where this node's server listens, before there is a candidate

  Mutex mutex_;
  Condition changed_;
  std::string leader_ ABSL_GUARDED_BY(mutex_);   // "host:port"; empty: not known
  std::string problem_ ABSL_GUARDED_BY(mutex_);  // why it is not known
  std::string avoided_ ABSL_GUARDED_BY(mutex_);  // did not answer, and is still said to lead
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<ElectedMaster> candidate_ ABSL_GUARDED_BY(mutex_);  // it calls back
};

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_ELECTION_FINDER_H_
