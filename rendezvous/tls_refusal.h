#ifndef MUSTER_RENDEZVOUS_TLS_REFUSAL_H_
#define MUSTER_RENDEZVOUS_TLS_REFUSAL_H_

#include <absl/status/status.h>

#include <optional>

#include "base/host_port.h"
#include "rendezvous/messages.h"
#include "rendezvous/security.h"

namespace muster {

// What the end of a stream, before a master had spoken on it, says about TLS; nothing when it is
// about something else. Exit code 77: one of the two does not take the other's certificate. 78: the
// other side speaks no TLS. gRPC tells these apart by its texts alone.
//
// A master that does not take this node's certificate closes the connection, as TLS 1.3 has it, and
// so does one that happens to stop: `closed_before` says how many streams in a row have ended so.
std::optional<Rejected> TlsRefusal(const HostPort& endpoint, const ClientSecurity& security,
                                   const absl::Status& end, int closed_before);

// The same for one stream after the other.
class TlsRefusals {
 public:
  explicit TlsRefusals(const ClientSecurity& security) : security_(security) {}

  // A stream to this endpoint has ended, before a master had spoken on it.
  std::optional<Rejected> Ended(const HostPort& endpoint, const absl::Status& end);

 private:
  const ClientSecurity security_;
  int closed_ = 0;
};

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_TLS_REFUSAL_H_
