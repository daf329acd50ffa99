#ifndef MUSTER_RENDEZVOUS_MASTER_SERVER_H_
#define MUSTER_RENDEZVOUS_MASTER_SERVER_H_

#include <absl/status/statusor.h>

#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/host_port.h"
#include "rendezvous/admission_limits.h"
#include "rendezvous/master_loop.h"
#include "rendezvous/security.h"

namespace muster {

// A master: loop, service and listening socket. Thread-safe.
class MasterServer {
 public:
  struct Options {
    HostPort address;  // an IP literal of this host, or "0.0.0.0" or "::"; port 0: any free one
    ServerSecurity security;
    MasterLimits limits;
    MasterLoop::Options loop;  // its registry gets these limits
  };

  // Listens when it returns. `clock` outlives the server. Errors, each one line:
  //   AlreadyExists: something listens there already (the port is never shared).
  //   NotFound: the address is not one of this host.
  //   PermissionDenied: a port below 1024 without the right to it.
  //   FailedPrecondition, InvalidArgument: `security` does not fit the address or itself
  //     (CheckSecurity), or a file of it cannot be used.
  //   Unavailable: everything else, with the system's words.
  static absl::StatusOr<std::unique_ptr<MasterServer>> Start(Clock* clock, Options options);

  // Ends all streams. What has been sent gets half a second to leave.
  ~MasterServer();

  int port() const;

  // Calls `callback` once, on the loop's thread, when no job needs this master and no agent is
  // connected.
  void TellWhenIdle(std::function<void()> callback);

  // Calls `callback` once, on the loop's thread, as soon as it comes to that.
  void Ping(std::function<void()> callback);

  // Has one question answered, on the loop's thread; what the callback returns does not matter.
  void Ask(StatusQuery query, StatusCallback callback);

 private:
  struct Parts;
  explicit MasterServer(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_MASTER_SERVER_H_
