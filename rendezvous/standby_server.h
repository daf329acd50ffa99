#ifndef MUSTER_RENDEZVOUS_STANDBY_SERVER_H_
#define MUSTER_RENDEZVOUS_STANDBY_SERVER_H_

#include <absl/status/statusor.h>

#include <memory>
#include <string>

#include "base/host_port.h"
#include "rendezvous/security.h"

namespace grpc {
class Server;
}  // namespace grpc

namespace muster {

class Listener;

// What listens in place of a master that does not lead: answers every call with UNAVAILABLE and
// where the master is, so that the caller tries its next endpoint. It asks callers who they are as
// the master does, before it tells. Thread-safe.
class StandbyServer {
 public:
  // Listens when it returns. Errors as of Listener::Bind; FailedPrecondition: a file of `security`
  // cannot be used.
  static absl::StatusOr<std::unique_ptr<StandbyServer>> Start(const HostPort& address,
                                                              const ServerSecurity& security);
  ~StandbyServer();

  int port() const;

  // `address`: where the master is; empty: nobody is known to lead.
  void SetLeader(const std::string& address);

 private:
  class Service;
  explicit StandbyServer(std::unique_ptr<Service> service);

  std::unique_ptr<Service> service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<Listener> listener_;
};

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_STANDBY_SERVER_H_
