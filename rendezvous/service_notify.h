#ifndef MUSTER_RENDEZVOUS_SERVICE_NOTIFY_H_
#define MUSTER_RENDEZVOUS_SERVICE_NOTIFY_H_

#include <string>
#include <string_view>

#include "base/env.h"
#include "base/time.h"
#include "base/unique_fd.h"

namespace muster {

// Tells the service manager how a daemon is, as sd_notify(3) does: one datagram to $NOTIFY_SOCKET.
// Without that variable nothing is sent. Thread-safe.
class ServiceNotify {
 public:
  explicit ServiceNotify(const EnvMap& env);

  // Lines such as "READY=1" or "STATUS=text". Never blocks; what cannot be delivered is dropped.
  void Send(std::string_view lines) const;

  // Within which time the manager wants to hear "WATCHDOG=1"; zero: it does not.
  Duration watchdog() const { return watchdog_; }

 private:
  std::string address_;  // of the socket; the first byte of an abstract one is NUL
  UniqueFd socket_;
  Duration watchdog_{};
};

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_SERVICE_NOTIFY_H_
