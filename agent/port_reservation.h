#ifndef MUSTER_AGENT_PORT_RESERVATION_H_
#define MUSTER_AGENT_PORT_RESERVATION_H_

#include <string>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace muster {

// A TCP port set aside for a worker's store: a socket that is bound with SO_REUSEADDR and never
// listens. While it is held, the kernel hands the port to nobody who asks for "any port"; a program
// that names the port and sets SO_REUSEADDR can bind and listen (LibTorch's TCPStore does). That is
// all: nothing keeps such a program of somebody else away. Keep it until the generation has ended.
// Move-only.
class ReservedPort {
 public:
  ReservedPort() = default;  // none

  // `address`: a numeric IPv4 or IPv6 address of this host, or empty for all (IPv6 and IPv4
  // together where there is IPv6, else IPv4). InvalidArgument: not a numeric address. Unavailable:
  // no such address here, or no port left.
  static absl::StatusOr<ReservedPort> Reserve(const std::string& address = "");

  int port() const { return fd_.valid() ? port_ : 0; }  // 0: none
  void reset() { *this = ReservedPort(); }

 private:
  UniqueFd fd_;
  int port_ = 0;
};

}  // namespace muster

#endif  // MUSTER_AGENT_PORT_RESERVATION_H_
