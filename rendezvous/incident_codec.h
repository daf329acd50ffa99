#ifndef MUSTER_RENDEZVOUS_INCIDENT_CODEC_H_
#define MUSTER_RENDEZVOUS_INCIDENT_CODEC_H_

#include <cstddef>
#include <vector>

#include "proto/state.pb.h"
#include "rendezvous/field_check.h"
#include "rendezvous/incident_record.h"
#include "rendezvous/reason.h"

// The part of rendezvous/state_codec.h that is about what people are told: reasons and incidents.
// What cannot be meant is told to the FieldCheck.

namespace muster {

// Texts are cut at so many bytes.
void EncodeReason(const Reason& from, size_t text_bytes_max, v1::KeptReason* to);
Reason DecodeReason(FieldCheck* check, const v1::KeptReason& from);

void EncodeIncidents(const std::vector<IncidentRecord>& from, v1::KeptJob* to);
std::vector<IncidentRecord> DecodeIncidents(FieldCheck* check, const v1::KeptJob& from);

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_INCIDENT_CODEC_H_
