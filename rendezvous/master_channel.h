#ifndef MUSTER_RENDEZVOUS_MASTER_CHANNEL_H_
#define MUSTER_RENDEZVOUS_MASTER_CHANNEL_H_

#include <absl/status/statusor.h>
#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <memory>
#include <string>

#include "base/host_port.h"
#include "base/time.h"
#include "rendezvous/dial.h"
#include "rendezvous/message_codec.h"
#include "rendezvous/security.h"

namespace muster {

// A channel to a master, and what its calls have to carry.
class MasterChannel {
 public:
  // On a connection that was just made to the endpoint. In the clear the channel uses it; over TLS
  // gRPC makes a connection of its own, to the same address and within `timeout`. Files are read
  // anew. `answer_bytes_max` is of one message. FailedPrecondition, one line: a file of `security`
  // cannot be used, or a token would travel in the clear outside this host.
  static absl::StatusOr<MasterChannel> Open(Connection connection, const HostPort& endpoint,
                                            const ClientSecurity& security, Duration timeout,
                                            size_t answer_bytes_max = kWireBytesMax);

  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }

  // Before each call.
  void Authorize(grpc::ClientContext* context) const;

 private:
  MasterChannel() = default;

  std::shared_ptr<grpc::Channel> channel_;
  std::string token_;  // empty: none
};

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_MASTER_CHANNEL_H_
