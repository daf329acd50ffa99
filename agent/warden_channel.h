#ifndef MUSTER_AGENT_WARDEN_CHANNEL_H_
#define MUSTER_AGENT_WARDEN_CHANNEL_H_

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.h"

namespace muster {

// One end of the stream socket between agent and warden: whole frames (agent/warden_protocol.h)
// with descriptors. Never blocks: what the socket does not take stays queued until Flush().
// Single-threaded.
class WardenChannel {
 public:
  // `socket`: a connected AF_UNIX stream socket.
  explicit WardenChannel(UniqueFd socket);

  int fd() const { return socket_.get(); }

  // Queues a frame and sends what the socket takes. `fds` go with it; they stay the caller's
  // (duplicates are queued, but of 0 to 2, which must stay open). Returns 0, or the errno with
  // which one of them could not be duplicated (EMFILE, EBADF): then nothing is sent.
  int Send(std::string frame, const std::vector<int>& fds = {});

  // Sends more of what is queued. Call when the socket is writable and wants_write(), and whenever
  // something has come from the peer.
  void Flush();
  bool wants_write() const { return !outbox_.empty() && !waits_for_peer_; }

  // Reads what has arrived, without waiting; not all of it while descriptors wait to be taken, so
  // take them and wait for the socket again. False when the peer is gone or sends what is no frame
  // (frames read before are still handed out).
  bool Fill();

  // The next whole frame, if there is one.
  std::optional<std::string> NextFrame();

  // The descriptors that came with the frames, in order. Nothing when fewer than `count` are there:
  // a broken peer.
  std::optional<std::vector<UniqueFd>> TakeFds(size_t count);

 private:
  struct Outgoing {
    std::string bytes;
    size_t sent = 0;
    std::vector<int> fds;
    std::vector<UniqueFd> owned = {};  // those of `fds` that are duplicates
  };

  bool is_sane() const;
  // False when the socket takes no more now or is broken.
  bool SendSome(Outgoing& out);

  UniqueFd socket_;
  std::deque<Outgoing> outbox_;
  bool waits_for_peer_ = false;  // the kernel takes no more descriptors until the peer takes some
  std::string inbox_;
  size_t inbox_read_ = 0;
  std::deque<UniqueFd> fds_;
};

}  // namespace muster

#endif  // MUSTER_AGENT_WARDEN_CHANNEL_H_
