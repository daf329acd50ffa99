#ifndef MUSTER_RENDEZVOUS_STATUS_CODEC_H_
#define MUSTER_RENDEZVOUS_STATUS_CODEC_H_

#include <cstdint>

#include "proto/status.pb.h"
#include "rendezvous/job_registry.h"
#include "rendezvous/status_watchers.h"

namespace muster {

// What a master tells of its jobs, as it goes over the wire. `unix_ms`: the wall clock.
v1::StatusResponse Encode(const MasterReport& report, int64_t unix_ms);

v1::IncidentStatus Encode(const IncidentRecord& record);

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_STATUS_CODEC_H_
