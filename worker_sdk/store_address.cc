#include "worker_sdk/store_address.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>

#include "base/unique_fd.h"

namespace muster {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

int MillisecondsUntil(Clock::time_point moment) {
  const auto left = std::chrono::ceil<milliseconds>(moment - Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 60'000));
}

bool Accepts(const addrinfo& address, Clock::time_point deadline) {
  const UniqueFd socket(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return false;
  if (connect(socket.get(), address.ai_addr, address.ai_addrlen) == 0) return true;
  if (errno != EINPROGRESS) return false;
  pollfd ready{socket.get(), POLLOUT, 0};
  // A packet to a host that is still booting may be lost without an answer: ask again after a
  // second.
  const auto patience = std::min(deadline, Clock::now() + std::chrono::seconds(1));
  if (poll(&ready, 1, MillisecondsUntil(patience)) != 1) return false;
  int error = 0;
  socklen_t size = sizeof error;
  return getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
}

bool AnyAccepts(const std::string& host, uint16_t port, Clock::time_point deadline) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return false;
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> list(found, &freeaddrinfo);
  for (const addrinfo* one = list.get(); one != nullptr; one = one->ai_next) {
    if (Accepts(*one, deadline)) return true;
  }
  return false;
}

}  // namespace

bool IsLoopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host == "ip6-localhost" ||
         host.starts_with("127.") || host.starts_with("::ffff:127.");
}

bool AwaitListener(const std::string& host, uint16_t port, Clock::time_point deadline) {
  milliseconds pause(2);
  while (!AnyAccepts(host, port, deadline)) {
    if (Clock::now() >= deadline) return false;
    // There is nothing to wait on: no event tells when a port of another process opens.
    poll(nullptr, 0, MillisecondsUntil(std::min(deadline, Clock::now() + pause)));
    pause = std::min(pause * 2, milliseconds(250));
  }
  return true;
}

}  // namespace muster
