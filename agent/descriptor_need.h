#ifndef MUSTER_AGENT_DESCRIPTOR_NEED_H_
#define MUSTER_AGENT_DESCRIPTOR_NEED_H_

#include <cstdint>

#include "absl/status/status.h"
#include "agent/agent_options.h"

namespace muster {

// How many descriptors the agent of such a node opens while it starts its workers; a connection of
// a worker to its socket comes on top where there is room.
int64_t DescriptorsNeeded(const AgentOptions& options);

// ResourceExhausted, with what to do, when `limit` (the hard one) is too low: better said at once
// than by half of the workers.
absl::Status CheckDescriptorLimit(const AgentOptions& options, uint64_t limit);

}  // namespace muster

#endif  // MUSTER_AGENT_DESCRIPTOR_NEED_H_
