#ifndef MUSTER_RENDEZVOUS_ENDPOINT_FINDER_H_
#define MUSTER_RENDEZVOUS_ENDPOINT_FINDER_H_

#include <functional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "rendezvous/hosting.h"
#include "rendezvous/master_finder.h"

namespace muster {

// The master at given endpoints. With one of them this node hosts it where it can bind it; several
// are those of standing masters, of which one leads and the others answer that they stand by.
class EndpointFinder final : public MasterFinder {
 public:
  EndpointFinder(Clock* clock, ClusterOptions options);

  absl::StatusOr<Found> Find(const Resolver& resolve, int tries, int cancel_fd) override;
  void PassOver() override;
  int choices() const override { return static_cast<int>(options_.endpoints.size()); }
  void Cancel() override {}  // what Find waits for ends with the descriptor
  bool TellWhenIdle(std::function<void()> callback) override;
  void Close() override;

 private:
  absl::StatusOr<Connection> Reach(const HostPort& endpoint, const Resolver& resolve,
                                   int cancel_fd);
  absl::StatusOr<Connection> HostOrConnect(const HostPort& endpoint,
                                           std::vector<std::string> addresses, int cancel_fd);

  Clock* const clock_;
  const ClusterOptions options_;
  size_t next_ = 0;           // the endpoint that is tried first
  bool was_greeted_ = false;  // at the only endpoint there is a master, or was

  Mutex mutex_;
  HostedMaster hosted_ ABSL_GUARDED_BY(mutex_);  // set once
};

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_ENDPOINT_FINDER_H_
