#ifndef MUSTER_RENDEZVOUS_MASTER_DIAL_H_
#define MUSTER_RENDEZVOUS_MASTER_DIAL_H_

#include <absl/status/statusor.h>

#include <string>
#include <vector>

#include "base/time.h"
#include "rendezvous/dial.h"
#include "rendezvous/rendezvous_client.h"

namespace muster {

// A connection on which a master has begun to speak: Connect (rendezvous/dial.h), then
// AwaitGreeting (rendezvous/greeting.h); `patience` for each, and the errors of both. Where what
// listens is no master and this host knows who it is, the error says so; where it closes without an
// answer, it is asked whether it speaks TLS. Over TLS nobody speaks unasked: only Connect.
absl::StatusOr<Connection> DialMaster(const std::vector<std::string>& addresses, int port,
                                      Duration patience, int cancel_fd, bool over_tls);

// What an error of DialMaster or TryHost (rendezvous/hosting.h) means for further attempts.
Obstacle ObstacleOf(const absl::Status& status);

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_MASTER_DIAL_H_
