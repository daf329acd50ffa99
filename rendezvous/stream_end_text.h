#ifndef MUSTER_RENDEZVOUS_STREAM_END_TEXT_H_
#define MUSTER_RENDEZVOUS_STREAM_END_TEXT_H_

#include <absl/status/status.h>

#include <string>

#include "base/host_port.h"
#include "rendezvous/rendezvous_client.h"

namespace muster {

// One line for a stream that could not be opened: "node07:29400: 10.0.0.7:29400: connection
// refused".
std::string DialFailureText(const HostPort& endpoint, const absl::Status& status);

// One line for a stream that ended with `status` on a connection to `address`. `heard_master`: a
// master had greeted.
std::string StreamEndText(const HostPort& endpoint, const std::string& address,
                          const absl::Status& status, bool heard_master);

// Whether the next stream would come to the same end. A master that is short of something is no
// obstacle.
Obstacle ObstacleAfter(const absl::Status& status, bool heard_master);

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_STREAM_END_TEXT_H_
