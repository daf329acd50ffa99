#ifndef MUSTER_TESTS_FAKES_FAKE_CLOCK_H_
#define MUSTER_TESTS_FAKES_FAKE_CLOCK_H_

#include <cstdint>
#include <map>

#include "base/clock.h"

namespace muster {

// A clock that stands still until a test moves it. Threads that wait on it wait for real, without
// polling.
class FakeClock : public Clock {
 public:
  Time Now() const override {
    MutexLock lock(&mutex_);
    return now_;
  }

  void Wait(Mutex* mutex, Condition* condition, Time deadline) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

  // Moves the time by `span`, stopping at every deadline on the way until its waiter has woken and
  // some thread waits again: what one thread does in a loop over this clock happens at the exact
  // moments it asked for.
  void Advance(Duration span);

  // Moves the time in one jump, as a process sees it that was stopped meanwhile.
  void Jump(Duration span);

  // Returns once some thread waits.
  void AwaitWaiter();

 private:
  struct Waiter {
    Mutex* mutex;
    Condition* condition;
    Time deadline;
  };

  void AwaitWaiterLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MoveTo(Time time);

  mutable Mutex mutex_;
  Condition changed_;
  Time now_ ABSL_GUARDED_BY(mutex_) = Time(std::chrono::hours(1));
  uint64_t last_ticket_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, Waiter> waiters_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_TESTS_FAKES_FAKE_CLOCK_H_
