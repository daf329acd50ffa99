#ifndef MUSTER_RENDEZVOUS_MASTER_LOOP_H_
#define MUSTER_RENDEZVOUS_MASTER_LOOP_H_

#include <absl/status/status.h>

#include <functional>
#include <set>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/event_queue.h"
#include "rendezvous/job_registry.h"
#include "rendezvous/round_machine.h"
#include "rendezvous/status_watchers.h"

namespace muster {

// The agents' streams as the loop sees them. Called by the loop's thread; none may block. Unknown
// streams are ignored.
class AgentStreams {
 public:
  virtual ~AgentStreams() = default;
  virtual void Send(StreamId stream, const MasterMessage& message) = 0;
  // Ends the stream with OK after what was sent.
  virtual void Close(StreamId stream) = 0;
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
// OK; NotFound: no such job, with the nearest name; FailedPrecondition: it has ended.
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

using LoopEvent = std::variant<StreamOpened, MessageArrived, StreamBroken, TellWhenIdle, JobCommand,
                               WatchStatus, WatchResumed, WatchEnded, Ping>;

// The one thread of a master: takes events from the queue, steps the jobs' machines, performs the
// effects in order, and sleeps exactly until something happens or the next deadline comes.
//
// It notices when the process did not run for a while (stopped, starved): it then wakes later than
// it asked for, tells the machines so (WokeUp) and hands them what has arrived meanwhile before any
// deadline is judged.
class MasterLoop {
 public:
  struct Options {
    JobRegistry::Options registry;
    // Every decision of every job, on the loop's thread; must not block. May be empty.
    std::function<void(const std::string& job_id, const Reason& reason)> on_decision;
    // An incident has begun (its outcome is kOpen) or ended. Likewise.
    std::function<void(const std::string& job_id, uint64_t instance, const IncidentRecord& record)>
        on_incident;
  };

  // `clock` and `streams` outlive the loop. Runs from the constructor to Stop().
  MasterLoop(Clock* clock, AgentStreams* streams, Options options);
  ~MasterLoop();  // stops

  // Any thread. Waits while the queue is full; after Stop() the event is dropped.
  void Post(LoopEvent event);

  // Not from the loop's thread. Events that are queued are not handled any more.
  void Stop();

 private:
  void Run();
  void Handle(Time now, LoopEvent event);
  void Handle(Time now, const StreamOpened& event);
  void Handle(Time now, MessageArrived event);
  void Handle(Time now, const StreamBroken& event);
  void Handle(Time now, TellWhenIdle event);
  void Handle(Time now, const JobCommand& event);
  void Handle(Time now, WatchStatus event);
  void Handle(Time now, const WatchResumed& event);
  void Handle(Time now, const WatchEnded& event);
  void Handle(Time now, const Ping& event);
  void Perform(const std::vector<JobEffects>& all);
  void TellBroken(Time now);
  void TellIdle();
  void TellWatchers(Time now);

  Clock* const clock_;
  AgentStreams* const streams_;
  const Options options_;
  EventQueue<LoopEvent> queue_;
  JobRegistry registry_;
  StatusWatchers watchers_;
  std::set<StreamId> open_;
  Time hear_until_{};                 // after a freeze: streams that break are told then
  std::vector<StreamBroken> broken_;  // until hear_until_
  std::vector<std::function<void()>> idle_callbacks_;
  std::thread thread_;  // last: it uses the others
};

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_MASTER_LOOP_H_
