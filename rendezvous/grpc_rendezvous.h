#ifndef MUSTER_RENDEZVOUS_GRPC_RENDEZVOUS_H_
#define MUSTER_RENDEZVOUS_GRPC_RENDEZVOUS_H_

#include <memory>
#include <optional>

#include "base/clock.h"
#include "rendezvous/cluster.h"
#include "rendezvous/rendezvous_client.h"

namespace muster {

// RendezvousClient over gRPC. A thread of its own resolves, binds and connects, because each of
// these can block; gRPC's threads bring messages; the caller's thread only takes what is ready.
class GrpcRendezvous final : public RendezvousClient {
 public:
  // `clock` drives the hosted master and outlives the client.
  GrpcRendezvous(Clock* clock, const ClusterOptions& options);
  ~GrpcRendezvous() override;

  void Open() override;
  void Send(AgentMessage message) override;
  void Finish() override;
  int fd() const override;
  std::optional<ClientEvent> Receive() override;

 private:
  class Core;
  std::shared_ptr<Core>
      core_;  // shared with the threads; a resolver that hangs may outlive this object
};

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_GRPC_RENDEZVOUS_H_
