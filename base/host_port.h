#ifndef MUSTER_BASE_HOST_PORT_H_
#define MUSTER_BASE_HOST_PORT_H_

#include <absl/status/statusor.h>

#include <string>
#include <string_view>

namespace muster {

// Where something listens: a host name or an IP address (IPv6 without brackets), and a TCP port.
struct HostPort {
  std::string host;
  int port = 0;

  bool operator==(const HostPort&) const = default;
};

// "host:port"; an IPv6 address gets its brackets: "[::1]:29400".
std::string ToString(const HostPort& endpoint);

// Reads "host", "host:port", "1.2.3.4:port", "[::1]", "[::1]:port" and a bare IPv6 address ("::1",
// "fe80::1%eth0"). An empty text or host means "localhost"; a missing port means `default_port`.
// Port 0 is allowed ("any"). InvalidArgument, one line that quotes the text, for: a port that is
// not a number from 0 to 65535, an unclosed bracket, brackets around something that is no IPv6
// address, characters that no host name has, a host of more than 253 characters.
absl::StatusOr<HostPort> ParseHostPort(std::string_view text, int default_port);

// True for an IPv4 or IPv6 address in text form (no brackets; a zone such as %eth0 is allowed).
bool IsAddressLiteral(const std::string& host);

// True for "localhost", 127.0.0.0/8 and ::1 (also v4-mapped).
bool IsLoopbackHost(const std::string& host);

// "1.2.3.4" for "::ffff:1.2.3.4"; everything else unchanged.
std::string UnmapAddress(const std::string& address);

}  // namespace muster

#endif  // MUSTER_BASE_HOST_PORT_H_
