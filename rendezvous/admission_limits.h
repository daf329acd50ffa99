#ifndef MUSTER_RENDEZVOUS_ADMISSION_LIMITS_H_
#define MUSTER_RENDEZVOUS_ADMISSION_LIMITS_H_

#include <cstddef>
#include <optional>
#include <string>

#include "base/time.h"

namespace muster {

// How much a master takes on. 0: no limit.
struct MasterLimits {
  size_t streams_max = 0;        // open at once
  int streams_per_second = 0;    // that may be opened; a second's worth may come at once
  size_t message_bytes_max = 0;  // of one message; the protocol's own limit holds, too
};

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
