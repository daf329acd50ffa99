#ifndef MUSTER_RENDEZVOUS_ADMISSION_LIMITS_H_
#define MUSTER_RENDEZVOUS_ADMISSION_LIMITS_H_

#include <cstddef>
#include <optional>
#include <string>

#include "base/time.h"
#include "rendezvous/messages.h"
#include "rendezvous/reason.h"

namespace muster {

// How much a master takes on. 0: no limit.
struct MasterLimits {
  size_t jobs_max = 0;           // that have not ended, or not for all of their agents
  size_t nodes_max = 0;          // of one job that are here, spares included
  size_t streams_max = 0;        // open at once
  int streams_per_second = 0;    // that may be opened; a second's worth may come at once
  size_t message_bytes_max = 0;  // of one message; the protocol's own limit holds, too
};

// What a Hello would add to.
struct MasterLoad {
  size_t jobs = 0;          // as jobs_max counts
  bool opens_job = false;   // the Hello is the first of a job
  size_t nodes = 0;         // of its job that are here
  bool is_of_them = false;  // its node is one of these
};

struct NoRoom {
  Reason reason;      // ReasonCode::kNoRoom
  int exit_code = 0;  // of the agent. 78: the job can never fit here; 75: it may later
};

// Why the master has no room for this agent; nothing when it has. One that has workers, or that a
// master of the job has let in before, is let in again.
std::optional<NoRoom> NoRoomFor(const MasterLimits& limits, const MasterLoad& load,
                                const Hello& hello);

// Which streams may be opened: so many at once, so many a second (a token bucket). Pure.
class StreamGate {
 public:
  explicit StreamGate(const MasterLimits& limits);

  // One more is wanted while `open` are there. Nothing: it may be opened, and counts. Else one
  // sentence; trying again later may help.
  std::optional<std::string> Enter(Time now, size_t open);

 private:
  const MasterLimits limits_;
  double tokens_;  // streams that may be opened right now
  std::optional<Time> filled_at_;
};

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_ADMISSION_LIMITS_H_
