#ifndef MUSTER_RENDEZVOUS_CONTROL_CLIENT_H_
#define MUSTER_RENDEZVOUS_CONTROL_CLIENT_H_

#include <absl/status/statusor.h>

#include <functional>
#include <memory>
#include <string>

#include "base/host_port.h"
#include "base/time.h"
#include "proto/status.pb.h"
#include "rendezvous/security.h"

namespace muster {

// Asks a master for its jobs, or ends one. For programs that ask and then end: every call blocks.
// Errors of all calls, one line each:
//   Unavailable         no master answers there, or it has gone
//   DeadlineExceeded    it did not answer within `timeout`
//   NotFound            it has no such job, or the job no such node
//   FailedPrecondition  the job has ended
//   Unauthenticated     it does not take the token or certificate, or this side not its
//   Unimplemented       what listens there is not a master, or only one of the two speaks TLS
//   Internal            everything else, with the other side's words
class ControlClient {
 public:
  // Connects; `timeout` is for each address of the endpoint, and for each call but Watch.
  static absl::StatusOr<std::unique_ptr<ControlClient>> Connect(const HostPort& endpoint,
                                                                const ClientSecurity& security,
                                                                Duration timeout);
  virtual ~ControlClient() = default;

  virtual absl::StatusOr<v1::StatusResponse> GetStatus(const v1::StatusRequest& request) = 0;

  // Calls `take` with each answer, until it returns false (OK) or the master ends.
  virtual absl::Status WatchStatus(const v1::StatusRequest& request,
                                   const std::function<bool(const v1::StatusResponse&)>& take) = 0;

  virtual absl::Status StopJob(const v1::StopJobRequest& request) = 0;
  virtual absl::Status DrainJob(const v1::DrainJobRequest& request) = 0;
  virtual absl::Status DrainNode(const v1::DrainNodeRequest& request) = 0;
};

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_CONTROL_CLIENT_H_
