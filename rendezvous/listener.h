#ifndef MUSTER_RENDEZVOUS_LISTENER_H_
#define MUSTER_RENDEZVOUS_LISTENER_H_

#include <absl/status/statusor.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <thread>

#include "base/host_port.h"
#include "base/unique_fd.h"

namespace muster {

// The listening socket of a gRPC server, with a thread that accepts on it. gRPC 1.51 would listen
// no more once the process has run out of descriptors; here who comes while few are left is turned
// away, and the others go on. Who says nothing is let go after 30 s, who has no call after 60 s.
class Listener {
 public:
  // On an IP literal of this host; "0.0.0.0" and "::" are all its addresses. Port 0: any free one.
  // Who connects has to wait for Start. Errors, each one line:
  //   AlreadyExists: something listens there already (the port is never shared).
  //   NotFound: the address is not one of this host.
  //   PermissionDenied: a port below 1024 without the right to it.
  //   Unavailable: everything else, with the system's words.
  static absl::StatusOr<std::unique_ptr<Listener>> Bind(const HostPort& address);

  // Accepts nobody any more. Has to come before the server is shut down.
  ~Listener();

  int port() const { return port_; }

  // Before the server is built.
  void Attach(grpc::ServerBuilder* builder,
              const std::shared_ptr<grpc::ServerCredentials>& credentials);

  // Once the server runs.
  void Start();

 private:
  Listener(UniqueFd socket, int port);
  void Run();
  void Accept();
  void Recover(int error);

  const UniqueFd socket_;
  const UniqueFd stop_;  // readable: the thread ends
  const int port_;
  UniqueFd spare_;  // given up for a moment when there is no other one
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> server_;
  std::thread thread_;
};

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_LISTENER_H_
