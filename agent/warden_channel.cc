#include "agent/warden_channel.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "agent/warden_protocol.h"

namespace muster {
namespace {

// The kernel never merges two control messages into one recvmsg, so this is more than one frame can
// bring.
constexpr size_t kFdsPerFrame = 8;
// How many are taken before the frames that they came with are served: what waits in the socket
// costs the receiver no descriptor.
constexpr size_t kFdsHeldMax = 16;

}  // namespace

WardenChannel::WardenChannel(UniqueFd socket) : socket_(std::move(socket)) {}

int WardenChannel::Send(std::string frame, const std::vector<int>& fds) {
  Outgoing out{std::move(frame), 0, {}};
  for (int fd : fds) {
    if (fd > STDERR_FILENO) {
      out.owned.emplace_back(fcntl(fd, F_DUPFD_CLOEXEC, 3));
      fd = out.owned.back().get();
      if (fd < 0) return errno;
    }
    out.fds.push_back(fd);
  }
  outbox_.push_back(std::move(out));
  Flush();
  return 0;
}

void WardenChannel::Flush() {
  waits_for_peer_ = false;
  while (!outbox_.empty() && SendSome(outbox_.front())) {
    if (outbox_.front().sent == outbox_.front().bytes.size()) outbox_.pop_front();
  }
}

bool WardenChannel::SendSome(Outgoing& out) {
  iovec piece{out.bytes.data() + out.sent, out.bytes.size() - out.sent};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kFdsPerFrame)> control{};
  if (out.sent == 0 && !out.fds.empty()) {
    const size_t size = sizeof(int) * out.fds.size();
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(size);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(size);
    for (size_t i = 0; i < out.fds.size(); ++i) {
      memcpy(CMSG_DATA(header) + i * sizeof(int), &out.fds[i], sizeof(int));
    }
  }
  ssize_t sent = 0;
  do {
    sent = sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0) {
    waits_for_peer_ = errno == ETOOMANYREFS;
    // A broken peer is noticed by Fill(); what was meant for it is of no use any more.
    if (errno != EAGAIN && errno != EWOULDBLOCK && !waits_for_peer_) outbox_.clear();
    return false;
  }
  out.sent += static_cast<size_t>(sent);
  return true;
}

bool WardenChannel::Fill() {
  std::array<char, 16 << 10> buffer;
  while (true) {
    if (fds_.size() >= kFdsHeldMax) return is_sane();
    iovec piece{buffer.data(), buffer.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kFdsPerFrame)> control{};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t got = recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return (errno == EAGAIN || errno == EWOULDBLOCK) && is_sane();
    for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
         header = CMSG_NXTHDR(&message, header)) {
      if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
      const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (size_t i = 0; i < count; ++i) {
        int fd = -1;
        memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(fd));
        fds_.emplace_back(fd);
      }
    }
    if (got == 0) return false;
    inbox_.append(buffer.data(), static_cast<size_t>(got));
  }
}

bool WardenChannel::is_sane() const {
  return FrameLength(std::string_view(inbox_).substr(inbox_read_)) <= kFrameMax;
}

std::optional<std::string> WardenChannel::NextFrame() {
  const std::string_view unread = std::string_view(inbox_).substr(inbox_read_);
  const size_t length = FrameLength(unread);
  if (length == 0 || unread.size() < length) {
    inbox_.erase(0, inbox_read_);
    inbox_read_ = 0;
    return std::nullopt;
  }
  inbox_read_ += length;
  return std::string(unread.substr(0, length));
}

std::optional<std::vector<UniqueFd>> WardenChannel::TakeFds(size_t count) {
  if (fds_.size() < count) return std::nullopt;
  std::vector<UniqueFd> taken;
  for (size_t i = 0; i < count; ++i) {
    taken.push_back(std::move(fds_.front()));
    fds_.pop_front();
  }
  return taken;
}

}  // namespace muster
