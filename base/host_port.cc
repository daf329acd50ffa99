#include "base/host_port.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <optional>

namespace muster {
namespace {

constexpr size_t kHostLengthMax = 253;  // RFC 1035

bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_';
}

// A zone is the name or number of an interface.
bool IsZone(std::string_view zone) {
  return !zone.empty() && std::all_of(zone.begin(), zone.end(), IsNameCharacter);
}

// inet_pton() would stop at a NUL and not see what follows.
bool HasNul(const std::string& text) { return text.find('\0') != std::string::npos; }

bool IsIpv6(const std::string& host) {
  const size_t percent = host.find('%');
  const std::string address = host.substr(0, percent);
  if (percent != std::string::npos && !IsZone(std::string_view(host).substr(percent + 1))) {
    return false;
  }
  in6_addr ignored;
  return !HasNul(address) && inet_pton(AF_INET6, address.c_str(), &ignored) == 1;
}

bool IsIpv4(const std::string& host) {
  in_addr ignored;
  return !HasNul(host) && inet_pton(AF_INET, host.c_str(), &ignored) == 1;
}

bool IsHostName(std::string_view host) {
  if (!std::all_of(host.begin(), host.end(), IsNameCharacter)) return false;
  return !host.empty() && host.size() <= kHostLengthMax && host.front() != '-';
}

std::optional<int> ParsePort(std::string_view text) {
  if (text.empty() || text.size() > 5) return std::nullopt;
  int port = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    port = port * 10 + (c - '0');
  }
  if (port > 65535) return std::nullopt;
  return port;
}

// Quotes what a user typed so that the message stays one readable line.
std::string Quoted(std::string_view text) {
  constexpr size_t kShown = 80;
  std::string quoted = "\"";
  for (const char c : text.substr(0, kShown)) {
    quoted += (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) ? '?' : c;
  }
  return quoted + (text.size() > kShown ? "...\"" : "\"");
}

absl::Status Bad(std::string_view text, const std::string& why) {
  return absl::InvalidArgumentError("endpoint " + Quoted(text) + ": " + why +
                                    "; write host:port or [ipv6]:port");
}

}  // namespace

std::string ToString(const HostPort& endpoint) {
  const bool brackets = endpoint.host.find(':') != std::string::npos;
  return (brackets ? "[" + endpoint.host + "]" : endpoint.host) + ":" +
         std::to_string(endpoint.port);
}

absl::StatusOr<HostPort> ParseHostPort(std::string_view text, int default_port) {
  HostPort result{.host = "localhost", .port = default_port};
  if (text.empty()) return result;

  std::string host;
  std::optional<std::string_view> port;
  if (text.front() == '[') {
    const size_t close = text.find(']');
    if (close == std::string_view::npos) return Bad(text, "the bracket is not closed");
    host = text.substr(1, close - 1);
    if (!IsIpv6(host)) return Bad(text, "what the brackets hold is no IPv6 address");
    const std::string_view rest = text.substr(close + 1);
    if (!rest.empty() && rest.front() != ':') return Bad(text, "something follows the bracket");
    if (!rest.empty()) port = rest.substr(1);
  } else if (IsIpv6(std::string(text))) {
    host = text;
  } else {
    const size_t colon = text.rfind(':');
    host = text.substr(0, colon);
    if (colon != std::string_view::npos) port = text.substr(colon + 1);
    if (host.empty()) host = "localhost";
    if (host.find(':') != std::string::npos) {
      return Bad(text, "an IPv6 address with a port needs brackets");
    }
    if (!IsHostName(host)) return Bad(text, "the host has characters that no host name has");
  }
  if (port.has_value()) {
    const std::optional<int> number = ParsePort(*port);
    if (!number.has_value()) return Bad(text, "the port is no number from 0 to 65535");
    result.port = *number;
  }
  result.host = host;
  return result;
}

bool IsAddressLiteral(const std::string& host) { return IsIpv4(host) || IsIpv6(host); }

bool IsLoopbackHost(const std::string& host) {
  if (host == "localhost" || host == "::1") return true;
  const std::string address = UnmapAddress(host);
  return IsIpv4(address) && address.rfind("127.", 0) == 0;
}

std::string UnmapAddress(const std::string& address) {
  in6_addr bytes;
  if (inet_pton(AF_INET6, address.c_str(), &bytes) != 1 || !IN6_IS_ADDR_V4MAPPED(&bytes)) {
    return address;
  }
  char text[INET_ADDRSTRLEN];
  return inet_ntop(AF_INET, &bytes.s6_addr[12], text, sizeof(text)) == nullptr ? address : text;
}

}  // namespace muster
