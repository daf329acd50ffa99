#ifndef MUSTER_RENDEZVOUS_INCIDENT_RECORD_H_
#define MUSTER_RENDEZVOUS_INCIDENT_RECORD_H_

#include <cstdint>
#include <optional>
#include <string>

#include "base/exit_status.h"
#include "base/time.h"
#include "rendezvous/reason.h"

namespace muster {

// What was at the bottom of it, as known when it is over.
enum class IncidentKind {
  kMembership,   // a node came, left or was taken out
  kNodeLost,     // a member was lost, or its workers were
  kExit,         // a worker exited with a code other than 0
  kSignal,       // a worker was killed by a signal
  kOutOfMemory,  // … by the kernel, for lack of memory
};

// The kind that the failure of a worker is, where nothing else was at the bottom of it.
IncidentKind KindOf(const ExitStatus& status, bool out_of_memory);

enum class IncidentOutcome {
  kOpen,       // under way
  kRecovered,  // the workers of the next generation are at work
  kRepeated,   // the next generation ended before it was at work: another incident began
  kJobEnded,   // there is no next generation
};

// One end of a generation that was not the end of the job's work, and the way back to work: what
// people and other programs are told of it. A plain value.
//
// The phases follow each other without gaps, each measured by the master's monotonic clock; unset:
// not reached.
struct IncidentRecord {
  uint64_t number = 0;          // from 1, within one instance of the job
  int64_t generation = 0;       // that ended
  int64_t next_generation = 0;  // 0: none yet
  int64_t unix_ms = 0;          // when the master noticed, by its wall clock: for people only
  Reason cause;                 // what the master noticed first
  IncidentKind kind = IncidentKind::kMembership;
  bool charged = false;  // to the restart budget
  IncidentOutcome outcome = IncidentOutcome::kOpen;

  // The first failure of a worker that the master heard of during the incident.
  std::string failed_node;  // empty: no worker failed
  int64_t failed_rank = -1;
  ExitStatus failed_status;
  bool out_of_memory = false;  // the kernel killed it for that

  // Silence of the node until it was given up; 0 for what the master was told or saw at once.
  Duration detect{};
  std::optional<Duration> stop;        // noticed → no member's workers stand in the way any more
  std::optional<Duration> rendezvous;  // → the next generation is assigned
  std::optional<Duration> start;       // → the workers of all its members run
  std::optional<Duration> ready;       // → they have all said READY=1

  // What has passed so far, `detect` included.
  Duration total() const {
    const Duration none{};
    return detect + stop.value_or(none) + rendezvous.value_or(none) + start.value_or(none) +
           ready.value_or(none);
  }

  bool operator==(const IncidentRecord&) const = default;
};

// "membership", "node_lost", "exit", "signal", "oom".
const char* Label(IncidentKind kind);
// "open", "recovered", "repeated", "job_ended".
const char* Label(IncidentOutcome outcome);

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_INCIDENT_RECORD_H_
