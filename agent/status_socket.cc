#include "agent/status_socket.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

constexpr int kBacklog = 16;
constexpr size_t kConnectionsMax = 16;
constexpr size_t kQuestionBytesMax = 1024;

}  // namespace

StatusSocket::StatusSocket(EventLoop& loop, Answer answer)
    : loop_(loop), answer_(std::move(answer)) {}

StatusSocket::~StatusSocket() {
  for (const auto& [fd, connection] : connections_) loop_.Unwatch(fd);
  if (!listener_.valid()) return;
  loop_.Unwatch(listener_.get());
  unlink(path_.c_str());
}

absl::Status StatusSocket::Open(const std::string& path) {
  if (listener_.valid()) return absl::OkStatus();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return absl::UnavailableError("status socket " + path + ": the path is too long");
  }
  path.copy(address.sun_path, path.size());
  UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid() || bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 ||
      listen(fd.get(), kBacklog) != 0) {
    return absl::UnavailableError(absl::StrCat("status socket ", path, ": ", strerror(errno)));
  }
  listener_ = std::move(fd);
  path_ = path;
  loop_.Watch(listener_.get(), EPOLLIN, [this](uint32_t) { Accept(); });
  return absl::OkStatus();
}

// Who is one too many finds the connection closed.
void StatusSocket::Accept() {
  UniqueFd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd.valid() || connections_.size() >= kConnectionsMax) return;
  const int number = fd.get();
  loop_.Watch(number, EPOLLIN, [this, number](uint32_t) { Read(number); });
  connections_[number] = std::move(fd);
}

void StatusSocket::Read(int fd) {
  char question[kQuestionBytesMax];
  const ssize_t size = recv(fd, question, sizeof(question), 0);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (size > 0) {
    const std::string answer = answer_(std::string_view(question, static_cast<size_t>(size)));
    if (!answer.empty()) send(fd, answer.data(), answer.size(), MSG_NOSIGNAL);
  }
  loop_.Unwatch(fd);
  connections_.erase(fd);
}

}  // namespace muster
