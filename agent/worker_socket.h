#ifndef MUSTER_AGENT_WORKER_SOCKET_H_
#define MUSTER_AGENT_WORKER_SOCKET_H_

#include <functional>
#include <list>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "base/event_loop.h"
#include "base/unique_fd.h"

namespace muster {

// The agent's ends of the workers' sockets of one generation (docs/WORKER_SOCKET.md):
// SOCK_SEQPACKET, one listening socket per local rank, up to 16 connections to each. A datagram is
// lines "KEY=VALUE" (agent/worker_message.h), 64 KiB at most. What cannot be read is dropped,
// counted, and noted once at debug level. Owns its sockets and their paths. Everything happens on
// the loop's thread; not thread-safe.
class WorkerSockets {
 public:
  // Called from RunOnce and Drain, for each line. The views die with the call. It may call Tell,
  // not Close.
  using OnLine = std::function<void(int local_rank, std::string_view key, std::string_view value)>;

  WorkerSockets(EventLoop& loop, OnLine on_line);
  ~WorkerSockets();
  WorkerSockets(const WorkerSockets&) = delete;
  WorkerSockets& operator=(const WorkerSockets&) = delete;

  // Starts a generation; paths[i] is of local rank i and replaces a file of that name. Closes the
  // one before. InvalidArgument: a path over 107 bytes. Unavailable: the socket cannot be made; all
  // are closed again then.
  absl::Status Open(const std::vector<std::string>& paths);

  // One datagram to each connection. Never blocks: a worker that does not read loses it, with a
  // warning. The latest text that begins with ABORT= and the latest with DRAIN= also go to every
  // later connection of this generation.
  void Tell(std::string_view text);

  // Takes all that the worker has sent so far. Call it when the worker has ended, before its exit
  // is acted on.
  void Drain(int local_rank);

  // Ends the generation: closes everything and removes the paths.
  void Close();

  int64_t malformed() const { return malformed_; }  // lines and datagrams, over all generations

 private:
  struct Listener {
    UniqueFd fd;
    std::string path;
  };
  struct Connection {
    UniqueFd fd;
    int local_rank;
  };

  absl::Status OpenOne(int local_rank, const std::string& path);
  void Accept(int local_rank);
  void StopAccepting(int local_rank, int error);
  // False when the connection has ended.
  bool Read(Connection& connection, int datagrams_max);
  void OnReadable(int fd);
  void SendTo(const Connection& connection, std::string_view text);
  void CountMalformed(int local_rank, int count, std::string_view what);

  EventLoop& loop_;
  OnLine on_line_;
  std::vector<Listener> listeners_;  // by local rank
  std::list<Connection> connections_;
  std::string buffer_;
  std::string abort_;
  std::string drain_;
  int64_t malformed_ = 0;
};

}  // namespace muster

#endif  // MUSTER_AGENT_WORKER_SOCKET_H_
