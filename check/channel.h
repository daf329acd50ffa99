#ifndef MUSTER_CHECK_CHANNEL_H_
#define MUSTER_CHECK_CHANNEL_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "base/unique_fd.h"
#include "check/fields.h"

// Connections of the check: TCP, without LibTorch and without gRPC. Nothing blocks longer than its
// deadline (on EventLoop's clock).

namespace muster::check {

// A socket that listens on all addresses of this host, and the port it has; `port` 0: any.
struct Listener {
  UniqueFd fd;  // not valid: `error` says why
  int port = 0;
  int error = 0;
};
Listener Listen(int port);

struct Target {
  std::string address;  // a literal
  int port = 0;
};
struct Dialled {
  UniqueFd fd;  // does not block; not valid: `error` says why, ETIMEDOUT at the deadline
  int error = 0;
};
// Connects to all targets at once; the answers are in their order.
std::vector<Dialled> Dial(const std::vector<Target>& targets, Time deadline);

// One end of a connection that carries messages. Movable; one thread.
class Channel {
 public:
  explicit Channel(UniqueFd fd) : fd_(std::move(fd)) {}

  int fd() const { return fd_.get(); }
  // The connection itself, for what is no message.
  UniqueFd Release() { return std::move(fd_); }
  // The other end has closed, or has sent what is no message.
  bool ended() const { return ended_; }

  // False: not all of it could be sent, and the channel has ended.
  bool Send(const Fields& message, Time deadline);
  // The next message; nothing by the deadline, or the channel has ended. A deadline in the past
  // only takes what is there.
  std::optional<Fields> Receive(Time deadline);

 private:
  std::optional<Fields> Take();

  UniqueFd fd_;
  std::string received_;
  bool ended_ = false;
};

}  // namespace muster::check

#endif  // MUSTER_CHECK_CHANNEL_H_
