#include "check/channel.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <memory>

#include "base/event_loop.h"

namespace muster::check {
namespace {

// Before each message: these four bytes, and its size in four more, the highest first.
constexpr std::string_view kMagic = "MCK1";
constexpr size_t kHeadSize = 8;
constexpr size_t kMessageBytesMax = 16 * 1024 * 1024;
constexpr int kBacklog = 4096;

// Errors are told by the calls that follow.
void Set(int fd, int level, int option, int value) {
  static_cast<void>(setsockopt(fd, level, option, &value, sizeof(value)));
}

int PortOf(int fd) {
  sockaddr_storage own{};
  socklen_t size = sizeof(own);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size) != 0) return 0;
  return ntohs(own.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6*>(&own)->sin6_port
                                         : reinterpret_cast<const sockaddr_in*>(&own)->sin_port);
}

template <typename Address>
Listener ListenOn(const Address& any, int family) {
  Listener listener;
  listener.fd.reset(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int fd = listener.fd.get();
  if (listener.fd.valid()) {
    // The agent holds a port reserved in this way.
    Set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    if (family == AF_INET6) Set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
  }
  if (!listener.fd.valid() || bind(fd, reinterpret_cast<const sockaddr*>(&any), sizeof(any)) != 0 ||
      listen(fd, kBacklog) != 0) {
    listener.error = errno;
    listener.fd.reset();
  } else {
    listener.port = PortOf(fd);
  }
  return listener;
}

Dialled Begin(const Target& target) {
  Dialled dialled;
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(target.address.c_str(), std::to_string(target.port).c_str(), &hints, &found) !=
      0) {
    dialled.error = EADDRNOTAVAIL;
    return dialled;
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
  dialled.fd.reset(socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!dialled.fd.valid() ||
      (connect(dialled.fd.get(), found->ai_addr, found->ai_addrlen) != 0 && errno != EINPROGRESS)) {
    dialled.error = errno;
    dialled.fd.reset();
  } else {
    Set(dialled.fd.get(), IPPROTO_TCP, TCP_NODELAY, 1);
  }
  return dialled;
}

int ErrorOf(int fd) {
  int error = 0;
  socklen_t size = sizeof(error);
  return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

}  // namespace

Listener Listen(int port) {
  sockaddr_in6 any6{};
  any6.sin6_family = AF_INET6;
  any6.sin6_port = htons(static_cast<uint16_t>(port));
  Listener listener = ListenOn(any6, AF_INET6);
  if (listener.error != EAFNOSUPPORT && listener.error != EADDRNOTAVAIL) return listener;
  sockaddr_in any4{};
  any4.sin_family = AF_INET;
  any4.sin_port = any6.sin6_port;
  return ListenOn(any4, AF_INET);
}

std::vector<Dialled> Dial(const std::vector<Target>& targets, Time deadline) {
  std::vector<Dialled> all;
  std::vector<pollfd> waiting;
  for (const Target& target : targets) {
    all.push_back(Begin(target));
    waiting.push_back({all.back().fd.get(), POLLOUT, 0});
  }
  while (true) {
    const auto left = std::count_if(waiting.begin(), waiting.end(),
                                    [](const pollfd& one) { return one.fd >= 0; });
    if (left == 0) return all;
    const int ready = poll(waiting.data(), waiting.size(), MillisecondsTo(deadline));
    if (ready < 0 && errno == EINTR) continue;
    for (size_t i = 0; i < waiting.size(); ++i) {
      if (waiting[i].fd < 0 || (ready > 0 && waiting[i].revents == 0)) continue;
      all[i].error = ready > 0 ? ErrorOf(waiting[i].fd) : ETIMEDOUT;
      waiting[i].fd = -1;  // which poll(2) passes over
      if (all[i].error != 0) all[i].fd.reset();
    }
  }
}

bool Channel::Send(const Fields& message, Time deadline) {
  const std::string body = EncodeFields(message);
  std::string bytes(kMagic);
  for (int shift : {24, 16, 8, 0}) bytes += static_cast<char>(body.size() >> shift & 0xff);
  bytes += body;
  size_t sent = 0;
  while (!ended_ && sent < bytes.size()) {
    const ssize_t size =
        send(fd_.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (size > 0) {
      sent += static_cast<size_t>(size);
      continue;
    }
    pollfd writable{fd_.get(), POLLOUT, 0};
    const bool may_wait = errno == EAGAIN || errno == EINTR;
    ended_ = !may_wait || poll(&writable, 1, MillisecondsTo(deadline)) == 0;
  }
  return !ended_;
}

std::optional<Fields> Channel::Take() {
  const std::string_view head = std::string_view(received_).substr(0, kHeadSize);
  if (head.substr(0, kMagic.size()) != kMagic.substr(0, head.size())) {
    ended_ = true;
    return std::nullopt;
  }
  if (head.size() < kHeadSize) return std::nullopt;
  size_t size = 0;
  for (size_t i = kMagic.size(); i < kHeadSize; ++i) {
    size = size << 8 | static_cast<unsigned char>(head[i]);
  }
  if (size > kMessageBytesMax) {
    ended_ = true;
    return std::nullopt;
  }
  if (received_.size() < kHeadSize + size) return std::nullopt;
  std::optional<Fields> message = DecodeFields(std::string_view(received_).substr(kHeadSize, size));
  received_.erase(0, kHeadSize + size);
  ended_ = ended_ || !message;
  return message;
}

std::optional<Fields> Channel::Receive(Time deadline) {
  while (true) {
    if (std::optional<Fields> message = Take()) return message;
    if (ended_) return std::nullopt;
    char bytes[65536];
    const ssize_t size = recv(fd_.get(), bytes, sizeof(bytes), MSG_DONTWAIT);
    if (size > 0) {
      received_.append(bytes, static_cast<size_t>(size));
      continue;
    }
    if (size == 0 || (errno != EAGAIN && errno != EINTR)) {
      ended_ = true;
      return std::nullopt;
    }
    pollfd readable{fd_.get(), POLLIN, 0};
    if (poll(&readable, 1, MillisecondsTo(deadline)) == 0) return std::nullopt;
  }
}

}  // namespace muster::check
