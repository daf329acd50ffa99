#ifndef MUSTER_RENDEZVOUS_MASTER_LOOP_H_
#define MUSTER_RENDEZVOUS_MASTER_LOOP_H_

#include <absl/status/status.h>

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/event_queue.h"
#include "rendezvous/job_registry.h"
#include "rendezvous/master_events.h"
#include "rendezvous/record_keeper.h"
#include "rendezvous/round_machine.h"
#include "rendezvous/state_store.h"
#include "rendezvous/status_watchers.h"
#include "rendezvous/store_writer.h"

namespace muster {

// The one thread of a master: takes events from the queue, steps the jobs' machines, performs the
// effects in order, and sleeps exactly until something happens or the next deadline comes. With a
// store it persists, then replies, then notifies; another thread waits for the store.
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
    // What the jobs' records are kept in, and what it had (rendezvous/state_codec.h, DecodeState).
    // Outlives the loop; nullptr: nothing outlives the master.
    StateStore* store = nullptr;
    MasterState restored;
    // Whether this master still has the right to serve at `now`; may be empty. Asked before
    // anything is done: one that was frozen learns late that another one has been elected.
    std::function<bool(Time now)> leads;
    // The store has trouble, or has got over it (OK). Jobs wait meanwhile. Likewise.
    std::function<void(const absl::Status& status)> on_store_trouble;
    // The right to write is lost: all streams have been closed, and the loop does nothing any more.
    // Likewise.
    std::function<void(const absl::Status& why)> on_deposed;
  };

  // `clock` and `streams` outlive the loop. Runs from the constructor to Stop().
  MasterLoop(Clock* clock, AgentStreams* streams, Options options);
  ~MasterLoop();  // stops

  // Any thread. Waits while the queue is full; after Stop() the event is dropped.
  void Post(LoopEvent event);

  // Not from the loop's thread. Events that are queued are not handled any more.
  void Stop();

 private:
  JobRegistry::Options RegistryOptions();
  RecordKeeper::Write WriteFunction();
  std::unique_ptr<StoreWriter> MakeWriter();
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
  void Handle(Time now, const Retire& event);
  void Handle(Time now, const StoreAnswered& event);
  void Do(Time now, std::vector<JobEffects> all);  // once what it follows from has been written
  void Perform(const std::vector<JobEffects>& all);
  void TellBroken(Time now);
  void TellIdle();
  void TellWatchers(Time now);

  Clock* const clock_;
  AgentStreams* const streams_;
  const Options options_;
  EventQueue<LoopEvent> queue_;
  JobRegistry registry_;
  RecordKeeper keeper_;
  std::unique_ptr<StoreWriter> writer_;  // without a store: none
  absl::Status store_trouble_;
  Time store_trouble_since_{};  // meaningful with trouble
  StoreCounters store_counters_;
  bool has_retired_ = false;
  std::vector<StreamId> delayed_;  // streams of jobs of which too much is kept back
  StatusWatchers watchers_;
  std::set<StreamId> open_;
  Time hear_until_{};  // after a freeze: before it no stream has broken, no one is judged
  std::vector<StreamBroken> broken_;  // until hear_until_
  std::vector<std::function<void()>> idle_callbacks_;
  std::thread thread_;  // last: it uses the others
};

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_MASTER_LOOP_H_
