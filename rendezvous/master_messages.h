#ifndef MUSTER_RENDEZVOUS_MASTER_MESSAGES_H_
#define MUSTER_RENDEZVOUS_MASTER_MESSAGES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "base/time.h"
#include "rendezvous/agent_messages.h"
#include "rendezvous/assignment.h"

// Master → agent (rendezvous/messages.h).

namespace muster {

struct HeartbeatAck {
  uint64_t sequence = 0;
  bool operator==(const HeartbeatAck&) const = default;
};

// Stop the workers of `generation` (TERM, grace, KILL) and answer WorkersStopped.
struct StopWorkers {
  int64_t generation = 0;
  std::string reason;  // one sentence
  bool operator==(const StopWorkers&) const = default;
};

// Nothing happens yet: why, and until when at the latest (from the moment of receipt).
struct Wait {
  std::string reason;
  Duration at_most{};
  bool operator==(const Wait&) const = default;
};

// The workers of `generation` shall reach a commit point, save and exit 0.
struct Drain {
  int64_t generation = 0;
  std::string reason;
  bool operator==(const Drain&) const = default;
};

// This node has been drained, the job goes on without it: leave with 0, acknowledging as a Verdict.
struct Drained {
  std::string reason;  // one sentence
  bool operator==(const Drained&) const = default;
};

// The end of the job. The agent acknowledges by half-closing its stream.
struct Verdict {
  bool succeeded = false;
  int exit_code = 0;             // what every node's launcher exits with
  std::string cause = {};        // one sentence; empty on success, unless the job was drained
  std::string failed_node = {};  // node id of the root cause, or empty
  int failed_rank = -1;
  std::optional<WorkerFailed> failure = {};  // the root cause as its node has told it
  bool operator==(const Verdict&) const = default;
};

// This agent will not be admitted. The stream ends after it.
struct Rejected {
  int exit_code = 0;   // 77 or 78 (docs/EXIT_CODES.md)
  std::string reason;  // what differs from what
  bool operator==(const Rejected&) const = default;
};

using MasterMessage =
    std::variant<HeartbeatAck, Assignment, StopWorkers, Wait, Drain, Verdict, Rejected, Drained>;

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_MASTER_MESSAGES_H_
