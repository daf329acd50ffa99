#include "agent/port_reservation.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace muster {
namespace {

struct Bound {
  UniqueFd fd;
  int port = 0;
};

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

Address V4(in_addr ip) {
  Address address;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
  v4->sin_family = AF_INET;
  v4->sin_addr = ip;
  address.size = sizeof(sockaddr_in);
  return address;
}

Address V6(in6_addr ip) {
  Address address;
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
  v6->sin6_family = AF_INET6;
  v6->sin6_addr = ip;
  address.size = sizeof(sockaddr_in6);
  return address;
}

std::optional<Address> Parse(const std::string& text) {
  in_addr v4{};
  in6_addr v6{};
  if (inet_pton(AF_INET, text.c_str(), &v4) == 1) return V4(v4);
  if (inet_pton(AF_INET6, text.c_str(), &v6) == 1) return V6(v6);
  return std::nullopt;
}

// The errno of what failed is left.
std::optional<Bound> Bind(Address address) {
  Bound bound{UniqueFd(socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0))};
  const int fd = bound.fd.get();
  const int yes = 1;
  const int no = 0;
  if (!bound.fd.valid()) return std::nullopt;
  if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) != 0) return std::nullopt;
  if (address.storage.ss_family == AF_INET6 &&
      setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no)) != 0) {
    return std::nullopt;
  }
  if (bind(fd, address.get(), address.size) != 0) return std::nullopt;
  if (getsockname(fd, address.get(), &address.size) != 0) return std::nullopt;
  bound.port = ntohs(address.storage.ss_family == AF_INET6
                         ? reinterpret_cast<sockaddr_in6*>(&address.storage)->sin6_port
                         : reinterpret_cast<sockaddr_in*>(&address.storage)->sin_port);
  return bound;
}

}  // namespace

absl::StatusOr<ReservedPort> ReservedPort::Reserve(const std::string& address) {
  std::optional<Bound> bound;
  if (address.empty()) {
    bound = Bind(V6(in6addr_any));
    if (!bound) bound = Bind(V4({htonl(INADDR_ANY)}));
  } else {
    const std::optional<Address> parsed = Parse(address);
    if (!parsed) {
      return absl::InvalidArgumentError(
          absl::StrCat("reserving a port: \"", address, "\" is not a numeric address"));
    }
    bound = Bind(*parsed);
  }
  if (!bound) {
    return absl::UnavailableError(
        absl::StrCat("reserving a port on ", address.empty() ? "all addresses" : address, ": ",
                     strerror(errno), errno == EADDRINUSE ? " (no port is left)" : ""));
  }
  ReservedPort reserved;
  reserved.fd_ = std::move(bound->fd);
  reserved.port_ = bound->port;
  return reserved;
}

}  // namespace muster
