#ifndef MUSTER_WORKER_SDK_COMMIT_RHYTHM_H_
#define MUSTER_WORKER_SDK_COMMIT_RHYTHM_H_

#include <cstdint>

#include "base/time.h"

// At which commits the ranks meet to tell each other news, and at which of these they remember
// their state, so that neither costs more than about 2 % of the time. Pure.
namespace muster {

// What a rank tells; and, the largest of each over all ranks, what every rank hears.
struct CommitNews {
  int64_t drain = 0;      // its agent asked it to drain
  int64_t remember = 0;   // of rank 0: now is the time
  int64_t failed = 0;     // of rank 0: what was written in the background failed
  int64_t commit_ns = 0;  // from one commit to the next

  bool operator==(const CommitNews&) const = default;
};

// The same on every rank at every commit, since it only counts commits and obeys what all heard.
class CommitRhythm {
 public:
  // Counts a commit. True: the ranks meet in this one.
  bool Count();

  CommitNews Tell(Time now, bool leader, bool drain, bool failed) const;
  // The meeting that ended `now`.
  void Heard(const CommitNews& news, Time now);
  // Remembering took from `begin` to `end`.
  void Remembered(Time begin, Time end);

 private:
  int64_t until_meeting_ = 1;
  int64_t counted_ = 0;  // since the last meeting
  int64_t every_ = 1;
  Time met_ = kNever;  // none yet
  Time remembered_ = kNever;
  Duration cost_{};  // of remembering
};

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_COMMIT_RHYTHM_H_
