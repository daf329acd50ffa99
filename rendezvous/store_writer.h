#ifndef MUSTER_RENDEZVOUS_STORE_WRITER_H_
#define MUSTER_RENDEZVOUS_STORE_WRITER_H_

#include <absl/status/status.h>

#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/time.h"
#include "rendezvous/job_record.h"
#include "rendezvous/state_store.h"

namespace muster {

// The thread that waits for the store, so that the master's loop need not.
class StoreWriter {
 public:
  // `clock` and `store` outlive the writer. `answer` is called on the writer's thread, once for
  // each Write, with how long that took.
  StoreWriter(const Clock* clock, StateStore* store,
              std::function<void(absl::Status, Duration)> answer);
  // Waits for the write that is under way.
  ~StoreWriter();

  // Not before the one before has been answered.
  void Write(std::vector<RecordChange> changes);

 private:
  void Run();

  const Clock* const clock_;
  StateStore* const store_;
  const std::function<void(absl::Status, Duration)> answer_;
  Mutex mutex_;
  Condition changed_;
  std::optional<std::vector<RecordChange>> next_ ABSL_GUARDED_BY(mutex_);
  bool ends_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_STORE_WRITER_H_
