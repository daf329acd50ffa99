#include "rendezvous/incident_record.h"

namespace muster {

IncidentKind KindOf(const ExitStatus& status, bool out_of_memory) {
  if (out_of_memory) return IncidentKind::kOutOfMemory;
  return status.signalled() ? IncidentKind::kSignal : IncidentKind::kExit;
}

const char* Label(IncidentKind kind) {
  switch (kind) {
    case IncidentKind::kMembership:
      return "membership";
    case IncidentKind::kNodeLost:
      return "node_lost";
    case IncidentKind::kExit:
      return "exit";
    case IncidentKind::kSignal:
      return "signal";
    case IncidentKind::kOutOfMemory:
      return "oom";
  }
  return "";
}

const char* Label(IncidentOutcome outcome) {
  switch (outcome) {
    case IncidentOutcome::kOpen:
      return "open";
    case IncidentOutcome::kRecovered:
      return "recovered";
    case IncidentOutcome::kRepeated:
      return "repeated";
    case IncidentOutcome::kJobEnded:
      return "job_ended";
  }
  return "";
}

}  // namespace muster
