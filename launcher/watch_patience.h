#ifndef MUSTER_LAUNCHER_WATCH_PATIENCE_H_
#define MUSTER_LAUNCHER_WATCH_PATIENCE_H_

#include <optional>

#include "absl/status/status.h"
#include "base/time.h"

namespace muster {

// How long `muster status --watch` looks for a master that has gone, and how often. Pure.
class WatchPatience {
 public:
  // Zero: not at all.
  explicit WatchPatience(Duration patience) : patience_(patience) {}

  // The master answered.
  void Heard();

  // The watch, or a try to begin it again, ended so. When the next try is due; nothing: that is the
  // end of the watch. A master that starts again without a state hears of its jobs from their
  // agents: that it does not know the job may pass. So may what is no master: a proxy whose
  // master is away.
  std::optional<Time> NextTry(Time now, const absl::Status& why);

  // The master that had answered is gone.
  bool is_lost() const { return lost_at_ != kNever; }

 private:
  const Duration patience_;
  bool has_heard_ = false;
  Time lost_at_ = kNever;
  Time unknown_since_ = kNever;
  Duration wait_{};
};

}  // namespace muster

#endif  // MUSTER_LAUNCHER_WATCH_PATIENCE_H_
