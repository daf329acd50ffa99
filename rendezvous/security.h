#ifndef MUSTER_RENDEZVOUS_SECURITY_H_
#define MUSTER_RENDEZVOUS_SECURITY_H_

#include <absl/status/status.h>

#include <string>
#include <vector>

#include "base/host_port.h"

// Who may talk to a master, as users say it; docs/SECURITY.md is the page for them. Pure: files are
// named here and read in rendezvous/credentials.h.

namespace muster {

// PEM files. Certificate and key come together.
struct TlsFiles {
  std::string ca = {};    // whose certificates the other side must have
  std::string cert = {};  // this side's own, with those between it and the CA behind it
  std::string key = {};

  bool operator==(const TlsFiles&) const = default;
};

// How a master listens.
struct ServerSecurity {
  TlsFiles tls = {};  // cert: it speaks TLS; ca: agents must have a certificate of it
  // Names of agents, of which a certificate must have one (DNS name, IP address or URI such as
  // spiffe://...); "*.example.org" is any one label before the rest. Empty: any of the CA's.
  std::vector<std::string> allowed_peers = {};
  std::string token_file = {};  // agents must know a token of it; empty: none
  bool insecure = false;        // may listen outside loopback without any of this

  bool has_tls() const { return !tls.cert.empty(); }
  // Whether an agent is told from a stranger.
  bool asks_who() const { return !tls.ca.empty() || !token_file.empty(); }
};

// How an agent, or the command line, connects.
struct ClientSecurity {
  TlsFiles tls = {};             // ca: it speaks TLS; cert: what it shows
  std::string server_name = {};  // that the certificate must have; empty: the endpoint's host
  std::string token_file = {};   // its first token is sent; empty: none

  bool has_tls() const { return !tls.ca.empty(); }
};

// Whether the parts fit together, and fit the address: outside loopback a master listens only with
// TLS, or when it was told to do without, and a token never travels in the clear.
// InvalidArgument: parts that contradict each other. FailedPrecondition: the address needs more.
absl::Status CheckSecurity(const ServerSecurity& security, const HostPort& listen);

// The same for the side that connects. InvalidArgument and FailedPrecondition, as above.
absl::Status CheckSecurity(const ClientSecurity& security, const HostPort& endpoint);

// Whether one of `names` (of a certificate) is allowed.
bool IsAllowedPeer(const std::vector<std::string>& allowed, const std::vector<std::string>& names);

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_SECURITY_H_
