#ifndef MUSTER_RENDEZVOUS_STATUS_JSON_H_
#define MUSTER_RENDEZVOUS_STATUS_JSON_H_

#include <string>

#include "proto/status.pb.h"

namespace muster {

// The answer of a master as JSON, in lines that people can read: `muster status -o json` and
// /api/v1/status. The fields are a promise to other programs (docs/STATUS.md).
std::string StatusJson(const v1::StatusResponse& status);

// One line, for the incident log: the fields of an incident, with the job that it belongs to.
std::string IncidentJson(const std::string& job_id, uint64_t instance,
                         const v1::IncidentStatus& incident);

// "2026-11-29T18:53:36.123Z".
std::string TimeText(int64_t unix_ms);

// "running", "ready", "recovered": the words that JSON and tables have.
std::string Word(v1::JobPhase phase);
std::string Word(v1::NodeState state);
std::string Word(v1::IncidentKind kind);
std::string Word(v1::IncidentOutcome outcome);

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_STATUS_JSON_H_
