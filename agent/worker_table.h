#ifndef MUSTER_AGENT_WORKER_TABLE_H_
#define MUSTER_AGENT_WORKER_TABLE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/exit_status.h"
#include "base/time.h"

namespace muster {

// One worker of the current generation, by local rank.
struct Worker {
  enum class State { kStarting, kRunning, kEnded };

  State state = State::kStarting;
  int pid = 0;
  Time started_at{};
  Time ended_at{};
  ExitStatus status;           // when ended
  bool stopped_by_us = false;  // it ended after we had begun to stop the node
  bool is_ready = false;
  Time last_report = kNever;    // of its socket, from its first STEP on
  std::string last_step;        // as it said it
  std::optional<int64_t> step;  // the same, where it is a number
  bool stalled = false;         // it was killed because it reported nothing
  std::string problem;          // why it could not be started, or what it said in ERROR=
};

// Why all of them are being stopped.
enum class StopCause {
  kNone,
  kWorkerFailed,
  kOrdered,
  kLeftovers,  // they have ended, and what they had started has not
  kLeaving,
  kVerdict,
  kMasterLost,
  kRejected,
  kDrained,
};

// The workers of one node in one generation. Pure.
class WorkerTable {
 public:
  void Reset(int slots) {
    workers_.assign(slots, Worker());
    slowest_.reset();
  }
  void Clear() { workers_.clear(); }

  int size() const { return static_cast<int>(workers_.size()); }
  // Nothing for a local rank that does not exist.
  Worker* Find(int local_rank) {
    return local_rank < 0 || local_rank >= size() ? nullptr : &workers_[local_rank];
  }
  const std::vector<Worker>& workers() const { return workers_; }

  // The worker that is furthest behind, of those that have not ended and have told a step, and
  // since when it has been there.
  struct Slowest {
    int64_t step = 0;
    Time since{};
  };
  // The worker says how far it is.
  void Reached(Worker* worker, int64_t step, Time now);
  const std::optional<Slowest>& slowest() const { return slowest_; }

  bool AllStarted() const;  // running, or ended already
  bool AllReady() const;
  bool AllEnded() const;

 private:
  std::vector<Worker> workers_;
  std::optional<Slowest> slowest_;
};

}  // namespace muster

#endif  // MUSTER_AGENT_WORKER_TABLE_H_
