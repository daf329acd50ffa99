#include "rendezvous/master_dial.h"

#include "base/host_port.h"
#include "base/local_addresses.h"
#include "base/port_user.h"
#include "rendezvous/greeting.h"

namespace muster {
namespace {

absl::Status WithPortUser(const absl::Status& status, const std::string& address, int port) {
  if (ObstacleOf(status) == Obstacle::kNone || !IsLocalAddress(address)) return status;
  const PortUser user = FindPortUser(port);
  if (user.pid == 0) return status;
  return absl::Status(status.code(), std::string(status.message()) + " (" + user.text + ")");
}

}  // namespace

absl::StatusOr<Connection> DialMaster(const std::vector<std::string>& addresses, int port,
                                      Duration patience, int cancel_fd, bool over_tls) {
  absl::StatusOr<Connection> connection = Connect(addresses, port, patience, cancel_fd);
  if (!connection.ok() || over_tls) return connection;
  const std::string where = ToString({connection->address, port});
  absl::Status greeted = AwaitGreeting(connection->fd.get(), where, patience, cancel_fd);
  if (greeted.ok()) return connection;
  if (absl::IsOutOfRange(greeted)) {
    const auto again = Connect({connection->address}, port, patience, cancel_fd);
    if (again.ok()) {
      const absl::Status plain = CheckSpeaksNoTls(again->fd.get(), where, patience, cancel_fd);
      if (!plain.ok()) return plain;
    }
  }
  return WithPortUser(greeted, connection->address, port);
}

Obstacle ObstacleOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kPermissionDenied:
      return Obstacle::kForbidden;
    case absl::StatusCode::kFailedPrecondition:
      return Obstacle::kForeign;
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kOutOfRange:
      return Obstacle::kSilent;
    default:
      return Obstacle::kNone;
  }
}

}  // namespace muster
