#ifndef MUSTER_RENDEZVOUS_ATTEND_CALL_H_
#define MUSTER_RENDEZVOUS_ATTEND_CALL_H_

#include <absl/status/status.h>

#include <functional>
#include <memory>
#include <string>

#include "rendezvous/master_channel.h"
#include "rendezvous/messages.h"

namespace muster {

// The agent's end of one Attend stream. Thread-safe; no call blocks.
class AttendCall {
 public:
  struct Listener {
    // Both are called by threads of gRPC, never two at once. True: the next message may come;
    // false: not before Resume().
    std::function<bool(MasterMessage)> on_message;
    // Called once, last. OK: the master closed the stream. `heard_master`: it has greeted or spoken
    // before.
    std::function<void(absl::Status, bool heard_master)> on_end;
  };

  static std::shared_ptr<AttendCall> Start(MasterChannel channel, Listener listener);

  virtual ~AttendCall() = default;

  // Queues a message; dropped when the stream has ended or is half-closed.
  virtual void Send(const AgentMessage& message) = 0;
  // Lets the next message come.
  virtual void Resume() = 0;
  // No more messages to the master, after those that are queued.
  virtual void HalfClose() = 0;
  // Breaks the stream; on_end follows.
  virtual void Cancel() = 0;
};

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_ATTEND_CALL_H_
