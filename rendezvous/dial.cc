#include "rendezvous/dial.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/clock.h"

namespace muster {
namespace {

constexpr size_t kAddressesMax = 16;

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

AddressList Lookup(const char* host, const char* service, int flags, int* error) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  *error = getaddrinfo(host, service, &hints, &found);
  return AddressList(*error == 0 ? found : nullptr, &freeaddrinfo);
}

// With the zone of link-local addresses, without the port.
std::string AddressText(const sockaddr* address, socklen_t length) {
  char text[NI_MAXHOST];
  const int error = getnameinfo(address, length, text, sizeof(text), nullptr, 0, NI_NUMERICHOST);
  return error == 0 ? UnmapAddress(text) : "";
}

absl::Status ConnectError(const HostPort& endpoint, int error) {
  const std::string where = ToString(endpoint) + ": ";
  switch (error) {
    case ECONNREFUSED:
      return absl::UnavailableError(where + "connection refused");
    case ECONNRESET:
      return absl::UnavailableError(where + "connection reset");
    case EHOSTUNREACH:
    case ENETUNREACH:
      return absl::NotFoundError(where + "no route to the host");
    case ETIMEDOUT:
      return absl::DeadlineExceededError(where + "timed out, nothing answered");
    case ECANCELED:
      return absl::CancelledError(where + "cancelled");
    default:
      return absl::InternalError(where + std::strerror(error));
  }
}

// 0, or an errno; ECANCELED when cancel_fd became readable.
int AwaitConnected(int fd, int cancel_fd, Duration timeout) {
  RealClock clock;
  const Time deadline = clock.Now() + timeout;
  for (;;) {
    const Duration left = std::max(deadline - clock.Now(), Duration::zero());
    const timespec span{.tv_sec = static_cast<time_t>(left.count() / 1'000'000'000),
                        .tv_nsec = static_cast<long>(left.count() % 1'000'000'000)};
    pollfd waits[2] = {{.fd = fd, .events = POLLOUT, .revents = 0},
                       {.fd = cancel_fd, .events = POLLIN, .revents = 0}};
    const int ready = ppoll(waits, 2, &span, nullptr);
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) return errno;
    if (waits[1].revents != 0) return ECANCELED;
    if (ready == 0) return ETIMEDOUT;
    int error = 0;
    socklen_t length = sizeof(error);
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : errno;
  }
}

// On loopback a connection to a free port of the ephemeral range can meet itself.
bool IsSelfConnected(int fd) {
  sockaddr_storage own{};
  sockaddr_storage peer{};
  socklen_t own_length = sizeof(own);
  socklen_t peer_length = sizeof(peer);
  return getsockname(fd, reinterpret_cast<sockaddr*>(&own), &own_length) == 0 &&
         getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_length) == 0 &&
         own_length == peer_length && std::memcmp(&own, &peer, own_length) == 0;
}

absl::StatusOr<Connection> ConnectOne(const HostPort& endpoint, Duration timeout, int cancel_fd) {
  int error = 0;
  const std::string port = std::to_string(endpoint.port);
  const AddressList list =
      Lookup(endpoint.host.c_str(), port.c_str(), AI_NUMERICHOST | AI_NUMERICSERV, &error);
  if (list == nullptr) return ConnectError(endpoint, EADDRNOTAVAIL);

  Connection connection{
      .fd = UniqueFd(socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)),
      .address = UnmapAddress(endpoint.host),
      .port = endpoint.port,
      .own_address = ""};
  const int fd = connection.fd.get();
  if (fd < 0) return ConnectError(endpoint, errno);
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  if (connect(fd, list->ai_addr, list->ai_addrlen) != 0) {
    error = errno == EINPROGRESS ? AwaitConnected(fd, cancel_fd, timeout) : errno;
    if (error != 0) return ConnectError(endpoint, error);
  }
  if (IsSelfConnected(fd)) return ConnectError(endpoint, ECONNREFUSED);
  sockaddr_storage own{};
  socklen_t length = sizeof(own);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&own), &length) == 0) {
    connection.own_address = AddressText(reinterpret_cast<sockaddr*>(&own), length);
  }
  return connection;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ResolveHost(const std::string& host) {
  if (IsAddressLiteral(host)) return std::vector<std::string>{host};
  int error = 0;
  const AddressList list = Lookup(host.c_str(), nullptr, AI_ADDRCONFIG, &error);
  std::vector<std::string> addresses;
  for (const addrinfo* entry = list.get(); entry != nullptr; entry = entry->ai_next) {
    std::string text = AddressText(entry->ai_addr, entry->ai_addrlen);
    const bool known = std::find(addresses.begin(), addresses.end(), text) != addresses.end();
    if (!text.empty() && !known && addresses.size() < kAddressesMax) {
      addresses.push_back(std::move(text));
    }
  }
  if (!addresses.empty()) return addresses;
  const std::string words = error == 0 ? "it has no address" : gai_strerror(error);
  if (error == EAI_AGAIN) {
    return absl::UnavailableError("the resolver does not answer for " + host + " (" + words + ")");
  }
  return absl::NotFoundError("the name " + host + " is unknown (" + words + ")");
}

absl::StatusOr<Connection> Connect(const std::vector<std::string>& addresses, int port,
                                   Duration timeout, int cancel_fd) {
  absl::Status last = absl::NotFoundError("there is no address to connect to");
  for (const std::string& address : addresses) {
    absl::StatusOr<Connection> connection = ConnectOne({address, port}, timeout, cancel_fd);
    if (connection.ok() || absl::IsCancelled(connection.status())) return connection;
    last = connection.status();
  }
  return last;
}

}  // namespace muster
