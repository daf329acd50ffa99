#ifndef MUSTER_RENDEZVOUS_DIAL_H_
#define MUSTER_RENDEZVOUS_DIAL_H_

#include <absl/status/statusor.h>

#include <string>
#include <vector>

#include "base/host_port.h"
#include "base/time.h"
#include "base/unique_fd.h"

namespace muster {

// The addresses of a host name, in the system's order of preference, at most 16; an address literal
// is its own. May block for as long as the system's resolver does. NotFound: the name is unknown.
// Unavailable: the resolver does not answer now.
absl::StatusOr<std::vector<std::string>> ResolveHost(const std::string& host);

// A TCP connection that was just made.
struct Connection {
  UniqueFd fd;          // non-blocking
  std::string address;  // the one that answered
  int port = 0;
  std::string own_address;  // of this host on that connection
};

// Tries the addresses in order, each for at most `timeout`, until one connects or `cancel_fd` (-1:
// none) becomes readable. The error is the one of the last address, one line that names it, and has
// the code
//   Unavailable        refused, or reset
//   NotFound           no route to the host or its network
//   DeadlineExceeded   no answer in time
//   Cancelled          cancel_fd
//   Internal           everything else, with the system's words
absl::StatusOr<Connection> Connect(const std::vector<std::string>& addresses, int port,
                                   Duration timeout, int cancel_fd);

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_DIAL_H_
