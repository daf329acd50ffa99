#ifndef MUSTER_BASE_OUTPUT_FD_H_
#define MUSTER_BASE_OUTPUT_FD_H_

#include <sys/types.h>

#include <string_view>

#include "base/unique_fd.h"

namespace muster {

// Writes that never block, to a descriptor that others share (the launcher's stdout and stderr).
//
// O_NONBLOCK belongs to the open file description, which the shell and the workers share: set
// there, it would break them. So a pipe or terminal is opened a second time through /proc/self/fd,
// and only the new description does not block. A socket is written with MSG_DONTWAIT; a regular
// file never waits and is written as it is (a second description would have an offset of its own).
// Where a pipe or terminal cannot be opened again (another user's terminal), each write is preceded
// by poll(2) and at most PIPE_BUF long; it can then block only if another process fills the pipe in
// between. A pipe is given room for 1 MiB, if the kernel allows it.
//
// The process must ignore SIGPIPE. Not thread-safe.
class OutputFd {
 public:
  // `fd` stays the caller's and must outlive this object. It need not be open: every write then
  // fails with EBADF.
  explicit OutputFd(int fd);

  // Writes a beginning of `data` and returns how many bytes, or -1 with errno: EAGAIN when nothing
  // can be taken now (wait for POLLOUT on poll_fd()), EPIPE when the reader is gone, ENOSPC, EBADF,
  // EIO. Never EINTR.
  ssize_t TryWrite(std::string_view data);

  // What to wait on after EAGAIN. Not for epoll unless a write gave EAGAIN: regular files refuse
  // it.
  int poll_fd() const { return own_.valid() ? own_.get() : fd_; }

 private:
  enum class Kind { kPlain, kSocket, kPolled };

  int fd_;
  UniqueFd own_;  // the second description
  Kind kind_ = Kind::kPlain;
};

}  // namespace muster

#endif  // MUSTER_BASE_OUTPUT_FD_H_
