#include "base/output_fd.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

namespace muster {
namespace {

// As much as an unprivileged process may ask for: reader and writer wake each other up less often.
constexpr int kPipeBytes = 1024 * 1024;

bool CanTakeNow(int fd) {
  pollfd poll_for{fd, POLLOUT, 0};
  return poll(&poll_for, 1, 0) == 1 && (poll_for.revents & (POLLOUT | POLLERR | POLLHUP)) != 0;
}

}  // namespace

OutputFd::OutputFd(int fd) : fd_(fd) {
  struct stat status {};
  if (fstat(fd, &status) != 0 || S_ISREG(status.st_mode) || S_ISBLK(status.st_mode)) return;
  if (S_ISSOCK(status.st_mode)) {
    kind_ = Kind::kSocket;
    return;
  }
  own_.reset(open(("/proc/self/fd/" + std::to_string(fd)).c_str(),
                  O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  if (!own_.valid()) kind_ = Kind::kPolled;
  // Refused where the user has too much in pipes already: then it stays as it is.
  if (S_ISFIFO(status.st_mode) && fcntl(fd, F_GETPIPE_SZ) < kPipeBytes) {
    fcntl(fd, F_SETPIPE_SZ, kPipeBytes);
  }
}

ssize_t OutputFd::TryWrite(std::string_view data) {
  for (;;) {
    ssize_t written = -1;
    switch (kind_) {
      case Kind::kPlain:
        written = write(poll_fd(), data.data(), data.size());
        break;
      case Kind::kSocket:
        written = send(fd_, data.data(), data.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        break;
      case Kind::kPolled:
        if (!CanTakeNow(fd_)) {
          errno = EAGAIN;
          return -1;
        }
        written = write(fd_, data.data(), std::min<size_t>(data.size(), PIPE_BUF));
        break;
    }
    if (written >= 0 || errno != EINTR) return written;
  }
}

}  // namespace muster
