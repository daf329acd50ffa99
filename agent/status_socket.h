#ifndef MUSTER_AGENT_STATUS_SOCKET_H_
#define MUSTER_AGENT_STATUS_SOCKET_H_

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "base/event_loop.h"
#include "base/unique_fd.h"

namespace muster {

// Where an agent answers questions about itself: a Unix socket (SOCK_SEQPACKET) in the private
// directory of its run. One question and one answer a connection, a datagram each; the agent never
// blocks on whoever asks. Owns the socket and its path. Loop thread only.
class StatusSocket {
 public:
  // The answer to a question; empty: there is none.
  using Answer = std::function<std::string(std::string_view question)>;

  StatusSocket(EventLoop& loop, Answer answer);
  ~StatusSocket();
  StatusSocket(const StatusSocket&) = delete;
  StatusSocket& operator=(const StatusSocket&) = delete;

  // Does nothing when it listens already. Unavailable: the socket cannot be made; one line.
  absl::Status Open(const std::string& path);

 private:
  void Accept();
  void Read(int fd);

  EventLoop& loop_;
  const Answer answer_;
  UniqueFd listener_;
  std::string path_;
  std::map<int, UniqueFd> connections_;
};

}  // namespace muster

#endif  // MUSTER_AGENT_STATUS_SOCKET_H_
