#ifndef MUSTER_RENDEZVOUS_STATE_CODEC_H_
#define MUSTER_RENDEZVOUS_STATE_CODEC_H_

#include <absl/status/statusor.h>

#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/job_record.h"
#include "rendezvous/state_store.h"

// Between what a master remembers of its jobs and the values of its store (proto/state.proto).

namespace muster {

// Never fail; texts are cut and cleaned as in messages.
std::string EncodeJob(const JobRecord& record);
std::string EncodeMaster(const MasterRecord& record);

// A record that makes sense: each value within its limits, and together what a round machine can go
// on with. DataLoss: what is wrong. Unimplemented: a newer version wrote it.
absl::StatusOr<JobRecord> DecodeJob(std::string_view bytes);

// All that a store has loaded. Errors as above, and name the key.
absl::StatusOr<MasterState> DecodeState(const std::vector<StoredValue>& values);

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_STATE_CODEC_H_
