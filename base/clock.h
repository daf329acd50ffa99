#ifndef MUSTER_BASE_CLOCK_H_
#define MUSTER_BASE_CLOCK_H_

#include <cstdint>

#include "base/mutex.h"
#include "base/time.h"

namespace muster {

// The one door to the time of day, for shells only; machines get the time as an argument.
// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;

  virtual Time Now() const = 0;

  // Waits, with `mutex` released, until `condition` is signalled or `deadline` (may be kNever) has
  // come. May return early.
  virtual void Wait(Mutex* mutex, Condition* condition, Time deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) = 0;
};

// CLOCK_MONOTONIC: counts on while the process is stopped, stands still while the machine is
// suspended.
class RealClock : public Clock {
 public:
  Time Now() const override;
  void Wait(Mutex* mutex, Condition* condition, Time deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) override;
};

// Milliseconds since 1970 by the wall clock: for people to read, never for decisions.
int64_t WallClockMs();

}  // namespace muster

#endif  // MUSTER_BASE_CLOCK_H_
