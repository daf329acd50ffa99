#ifndef MUSTER_RENDEZVOUS_JOB_JOURNAL_H_
#define MUSTER_RENDEZVOUS_JOB_JOURNAL_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "rendezvous/histogram.h"
#include "rendezvous/incident_recorder.h"
#include "rendezvous/round_machine.h"

namespace muster {

// What has happened in a job so far, as far as this master saw it. Each by the label that the
// metric of that name has (docs/STATUS.md).
struct JobCounters {
  std::map<std::string, uint64_t> generations;      // by what they began after
  std::map<std::string, uint64_t> worker_restarts;  // workers that were started again, likewise
  std::map<std::string, uint64_t> worker_exits;     // by kind: ok, exit, signal, oom
  std::map<std::string, uint64_t> incidents;        // that are over, by IncidentKind
  Histogram rendezvous;  // first node joined, or workers stopped → assigned
  Histogram recovery;    // noticed → all workers at work again
};

// Watches one job's machine from beside it: incidents and counters. Pure.
class JobJournal {
 public:
  JobJournal() = default;
  explicit JobJournal(IncidentRecorder recorder) : recorder_(std::move(recorder)) {}

  // As IncidentRecorder::Observe.
  std::vector<IncidentRecord> Observe(Time now, int64_t unix_ms, const RoundMachine& machine,
                                      const RoundEvent& event, const RoundEffects& effects);

  const IncidentRecorder& recorder() const { return recorder_; }
  const JobCounters& counters() const { return counters_; }

 private:
  void CountExits(const RoundMachine& machine, const RoundEvent& event);
  void CountGeneration(Time now, const RoundMachine& machine);

  IncidentRecorder recorder_;
  JobCounters counters_;
  std::optional<Time> first_hello_at_;  // of a job that has not formed yet
  int64_t generation_ = 0;
  bool had_succeeded_ = false;
};

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_JOB_JOURNAL_H_
