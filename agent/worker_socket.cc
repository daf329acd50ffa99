#include "agent/worker_socket.h"

#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent/worker_message.h"
#include "base/log.h"

namespace muster {
namespace {

constexpr int kConnectionsMax = 16;       // per worker
constexpr int kDatagramsPerTurn = 64;     // then the other descriptors have their turn
constexpr int kDatagramsPerDrain = 4096;  // more than a socket's buffer holds at one moment

absl::Status Problem(const std::string& path, const char* what) {
  return absl::UnavailableError(
      absl::StrCat("worker socket ", path, ": ", what, ": ", strerror(errno)));
}

}  // namespace

WorkerSockets::WorkerSockets(EventLoop& loop, OnLine on_line)
    : loop_(loop), on_line_(std::move(on_line)) {}

WorkerSockets::~WorkerSockets() { Close(); }

absl::Status WorkerSockets::Open(const std::vector<std::string>& paths) {
  Close();
  for (const std::string& path : paths) {
    absl::Status opened = OpenOne(static_cast<int>(listeners_.size()), path);
    if (!opened.ok()) {
      Close();
      return opened;
    }
  }
  return absl::OkStatus();
}

absl::Status WorkerSockets::OpenOne(int local_rank, const std::string& path) {
  sockaddr_un address{};
  if (path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(absl::StrCat("worker socket ", path, ": the path has ",
                                                   path.size(), " bytes, the most is ",
                                                   sizeof(address.sun_path) - 1));
  }
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path, path.data(), path.size());
  const auto* name = reinterpret_cast<const sockaddr*>(&address);

  UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return Problem(path, "socket");
  if (bind(fd.get(), name, sizeof(address)) != 0) {
    if (errno != EADDRINUSE) return Problem(path, "bind");
    unlink(path.c_str());
    if (bind(fd.get(), name, sizeof(address)) != 0) return Problem(path, "bind");
  }
  if (listen(fd.get(), kConnectionsMax) != 0) return Problem(path, "listen");
  loop_.Watch(fd.get(), EPOLLIN, [this, local_rank](uint32_t) { Accept(local_rank); });
  listeners_.push_back({std::move(fd), path});
  return absl::OkStatus();
}

void WorkerSockets::Accept(int local_rank) {
  for (;;) {
    UniqueFd fd(
        accept4(listeners_[local_rank].fd.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd.valid()) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) StopAccepting(local_rank, errno);
      return;
    }
    const auto count =
        std::count_if(connections_.begin(), connections_.end(),
                      [local_rank](const Connection& c) { return c.local_rank == local_rank; });
    if (count >= kConnectionsMax) continue;
    const int raw_fd = fd.get();
    connections_.push_back({std::move(fd), local_rank});
    if (!abort_.empty()) SendTo(connections_.back(), abort_);
    if (!drain_.empty()) SendTo(connections_.back(), drain_);
    loop_.Watch(raw_fd, EPOLLIN, [this, raw_fd](uint32_t) { OnReadable(raw_fd); });
  }
}

// A listener that stays readable would spin the loop.
void WorkerSockets::StopAccepting(int local_rank, int error) {
  loop_.Unwatch(listeners_[local_rank].fd.get());
  Log(LogLevel::kWarning, absl::StrCat("no more connections are taken from local rank ", local_rank,
                                       ": ", strerror(error)));
}

void WorkerSockets::OnReadable(int fd) {
  const auto it = std::find_if(connections_.begin(), connections_.end(),
                               [fd](const Connection& c) { return c.fd.get() == fd; });
  if (it == connections_.end() || Read(*it, kDatagramsPerTurn)) return;
  loop_.Unwatch(fd);
  connections_.erase(it);
}

bool WorkerSockets::Read(Connection& connection, int datagrams_max) {
  // One byte more than allowed, so that what is too long shows.
  buffer_.resize(kWorkerMessageBytesMax + 1);
  const int local_rank = connection.local_rank;
  for (int i = 0; i < datagrams_max; ++i) {
    const ssize_t size = recv(connection.fd.get(), buffer_.data(), buffer_.size(), 0);
    if (size < 0) return errno == EAGAIN || errno == EINTR;
    if (size == 0) return false;
    if (size > kWorkerMessageBytesMax) {
      CountMalformed(local_rank, 1, "a message over 64 KiB");
      continue;
    }
    const int malformed =
        ParseWorkerMessage(std::string_view(buffer_.data(), static_cast<size_t>(size)),
                           [this, local_rank](std::string_view key, std::string_view value) {
                             on_line_(local_rank, key, value);
                           });
    if (malformed > 0) CountMalformed(local_rank, malformed, "a line that is not KEY=VALUE");
  }
  return true;
}

void WorkerSockets::CountMalformed(int local_rank, int count, std::string_view what) {
  if (malformed_ == 0 && LogEnabled(LogLevel::kDebug)) {
    Log(LogLevel::kDebug, absl::StrCat("local rank ", local_rank, " sent ", std::string(what),
                                       " on its worker socket; ignored, as later ones"));
  }
  malformed_ += count;
}

void WorkerSockets::Tell(std::string_view text) {
  if (absl::StartsWith(std::string(text), "ABORT=")) abort_ = text;
  if (absl::StartsWith(std::string(text), "DRAIN=")) drain_ = text;
  for (const Connection& connection : connections_) SendTo(connection, text);
}

void WorkerSockets::SendTo(const Connection& connection, std::string_view text) {
  if (send(connection.fd.get(), text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) return;
  // A connection that has ended is found and removed by reading it.
  if (errno == EPIPE || errno == ECONNRESET || errno == ENOTCONN) return;
  Log(LogLevel::kWarning,
      absl::StrCat("local rank ", connection.local_rank, " was not told ",
                   std::string(text.substr(0, text.find('\n'))),
                   ": it does not read its worker socket (", strerror(errno), ")"));
}

void WorkerSockets::Drain(int local_rank) {
  if (local_rank < 0 || local_rank >= static_cast<int>(listeners_.size())) return;
  Accept(local_rank);
  for (auto it = connections_.begin(); it != connections_.end();) {
    if (it->local_rank == local_rank && !Read(*it, kDatagramsPerDrain)) {
      loop_.Unwatch(it->fd.get());
      it = connections_.erase(it);
    } else {
      ++it;
    }
  }
}

void WorkerSockets::Close() {
  for (const Connection& connection : connections_) loop_.Unwatch(connection.fd.get());
  connections_.clear();
  for (const Listener& listener : listeners_) {
    loop_.Unwatch(listener.fd.get());
    unlink(listener.path.c_str());
  }
  listeners_.clear();
  abort_.clear();
  drain_.clear();
}

}  // namespace muster
