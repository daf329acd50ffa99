#ifndef MUSTER_RENDEZVOUS_GRPC_STATUS_H_
#define MUSTER_RENDEZVOUS_GRPC_STATUS_H_

#include <absl/status/status.h>
#include <grpcpp/support/status.h>

#include <string>

namespace muster {

// The codes of both are the same.
inline grpc::Status ToGrpc(const absl::Status& status) {
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()));
}

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_GRPC_STATUS_H_
