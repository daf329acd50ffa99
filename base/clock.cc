#include "base/clock.h"

namespace muster {

Time RealClock::Now() const {
  return Time(
      std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch()));
}

void RealClock::Wait(Mutex* mutex, Condition* condition, Time deadline) {
  if (deadline == kNever) {
    condition->Wait(mutex);
    return;
  }
  const Duration left = deadline - Now();
  if (left > Duration::zero()) condition->WaitFor(mutex, left);
}

}  // namespace muster
