#ifndef MUSTER_RENDEZVOUS_INCIDENT_RECORDER_H_
#define MUSTER_RENDEZVOUS_INCIDENT_RECORDER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "base/time.h"
#include "rendezvous/incident_record.h"
#include "rendezvous/round_machine.h"

namespace muster {

// Watches one job's machine from beside it and writes down each incident with the phases of the
// recovery. It decides nothing. Pure.
//
// An incident is over when all workers of the next generation are ready; where no worker of the job
// has ever said READY=1, when all of them run.
class IncidentRecorder {
 public:
  // Older ones are forgotten.
  static constexpr size_t kKept = 32;

  IncidentRecorder() = default;
  // Of a job that a master takes over: its machine, and what is known of it, the oldest first. An
  // incident that was open stays so; the phase that was under way remains unmeasured, and it is
  // over when all workers run: who said READY=1 before is not known.
  IncidentRecorder(const RoundMachine& restored, std::vector<IncidentRecord> known);

  // After each step of the machine, with the event and the effects of that step. `unix_ms`: the
  // wall clock. Returns the incidents that have begun or ended with it, in order.
  std::vector<IncidentRecord> Observe(Time now, int64_t unix_ms, const RoundMachine& machine,
                                      const RoundEvent& event, const RoundEffects& effects);

  // The oldest first.
  const std::deque<IncidentRecord>& incidents() const { return incidents_; }
  // The one that is under way, or nullptr.
  const IncidentRecord* open() const;
  // When the current generation was assigned; nothing: there is none, or an older master did it.
  std::optional<Time> assigned_at() const { return assigned_at_; }

 private:
  void Begin(int64_t unix_ms, const RoundMachine& machine, const RoundEffects& effects);
  void Follow(const RoundMachine& machine, const RoundEvent& event, const RoundEffects& effects);
  void FollowCauses(const RoundEvent& event, const RoundEffects& effects);
  void Classify(const RoundMachine& machine);
  void FollowStart(const RoundMachine& machine, const RoundEvent& event);
  void FollowVerdict(const Verdict& verdict);
  void Reach(size_t phases);
  void End(IncidentOutcome outcome);

  std::deque<IncidentRecord> incidents_;
  std::vector<IncidentRecord> news_;  // of the step in progress
  Time now_{};                        // of the step in progress
  uint64_t last_number_ = 0;
  bool says_ready_ = false;  // a worker of the job has said READY=1
  std::optional<Time> assigned_at_;

  // The machine after the last step.
  bool was_under_way_ = false;
  int64_t generation_ = 0;
  int restarts_used_ = 0;

  // Of the open incident.
  bool has_lost_node_ = false;
  bool is_taken_over_ = false;
  size_t phases_reached_ = 0;           // stop, rendezvous, start, ready
  std::optional<Time> phase_began_at_;  // nothing: before this master
  size_t started_reports_ = 0;          // of the next generation
  size_t ready_reports_ = 0;
};

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_INCIDENT_RECORDER_H_
