#ifndef MUSTER_RENDEZVOUS_MASTER_EVENTS_H_
#define MUSTER_RENDEZVOUS_MASTER_EVENTS_H_

#include <absl/status/status.h>

#include <functional>
#include <string>
#include <variant>

#include "base/time.h"
#include "rendezvous/events.h"
#include "rendezvous/status_watchers.h"

// What a master's loop is told, and whom it tells.

namespace muster {

// The agents' streams as the loop sees them. Called by the loop's thread; none may block. Unknown
// streams are ignored.
class AgentStreams {
 public:
  virtual ~AgentStreams() = default;
  virtual void Send(StreamId stream, const MasterMessage& message) = 0;
  // Ends the stream with OK after what was sent.
  virtual void Close(StreamId stream) = 0;
  // Ends every stream: this master serves no more.
  virtual void CloseAll() = 0;
  // The last message of the stream has been handled: the next one may be read. One message per
  // stream is under way at most, so no agent can fill the queue.
  virtual void Resume(StreamId stream) = 0;
};

// An agent has connected; it has said nothing yet. Comes before every other event of the stream.
struct StreamOpened {
  StreamId stream = 0;
};

// Call `callback` (on the loop's thread) when no job needs this master and no stream is open;
// perhaps at once.
struct TellWhenIdle {
  std::function<void()> callback;
};

// An operator's order to one job. `answer` may be empty, and is called on the loop's thread with
// OK; NotFound: no such job (with the nearest name) or node; FailedPrecondition: it has ended.
struct JobCommand {
  std::string job_id;
  RoundEvent event;
  std::function<void(absl::Status)> answer;
};

// Somebody wants to hear of jobs (rendezvous/status_watchers.h). After each answer nothing more is
// told before WatchResumed; a watcher that asked once needs neither that nor WatchEnded.
struct WatchStatus {
  WatcherId watcher = 0;
  StatusQuery query;
  StatusCallback callback;
};
struct WatchResumed {
  WatcherId watcher = 0;
};
struct WatchEnded {
  WatcherId watcher = 0;
};

// Call `callback` (on the loop's thread) when its turn has come: the loop turns.
struct Ping {
  std::function<void()> callback;
};

// This master serves no more. All streams are closed, and that they end says nothing of their
// nodes.
struct Retire {};

// How a write to the store went. Posted by the loop's own store thread.
struct StoreAnswered {
  absl::Status status;
  Duration took{};
};

using LoopEvent = std::variant<StreamOpened, MessageArrived, StreamBroken, TellWhenIdle, JobCommand,
                               WatchStatus, WatchResumed, WatchEnded, Ping, Retire, StoreAnswered>;

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_MASTER_EVENTS_H_
