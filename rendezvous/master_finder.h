#ifndef MUSTER_RENDEZVOUS_MASTER_FINDER_H_
#define MUSTER_RENDEZVOUS_MASTER_FINDER_H_

#include <absl/status/statusor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/host_port.h"
#include "rendezvous/cluster.h"
#include "rendezvous/dial.h"

namespace muster {

// Where the master of an agent's job is: one of several endpoints, or the one that was elected.
// Where this node may host the master, the finder does, for as long as it lives.
//
// Find and PassOver are called by one thread, the others by any.
class MasterFinder {
 public:
  struct Found {
    Connection connection;
    HostPort endpoint;     // that was dialled
    int passed_over = 0;   // endpoints that were tried before it in this call
    std::string failures;  // why: one line, empty when there are none
  };

  // As ResolveHost (rendezvous/dial.h); a caller that has to end meanwhile may let it run.
  using Resolver = std::function<absl::StatusOr<std::vector<std::string>>(const std::string& host)>;

  virtual ~MasterFinder() = default;

  // A connection to the master, or to what should be it. Blocks, until `cancel_fd` is readable and
  // Cancel() was called at the latest. Errors: one line that names the endpoints; Cancelled; as
  // DialMaster and TryHost with one endpoint, else Unavailable, or Unimplemented where every one of
  // them speaks TLS and this node does not. `tries`: how many endpoints are tried.
  virtual absl::StatusOr<Found> Find(const Resolver& resolve, int tries, int cancel_fd) = 0;

  // No master answered on what Find returned last: the next one is tried first.
  virtual void PassOver() = 0;

  // How many there are to be tried until all have been.
  virtual int choices() const = 0;

  virtual void Cancel() = 0;

  // Calls `callback` once, on another thread, when nobody needs a master in this process. False,
  // and the callback is dropped: there is none in it.
  virtual bool TellWhenIdle(std::function<void()> callback) = 0;

  // Ends the master in this process, if there is one. After Cancel(); Find may still be under way.
  virtual void Close() = 0;
};

// Whether the files that the options name can be used now, before anybody is dialled.
// FailedPrecondition, one line that names the file.
absl::Status CheckFiles(const ClusterOptions& options);

// What the options ask for: the finder for endpoints, or for an election in etcd. `clock` outlives
// it.
std::unique_ptr<MasterFinder> MakeMasterFinder(Clock* clock, const ClusterOptions& options);

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_MASTER_FINDER_H_
