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

int64_t WallClockMs() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::floor<std::chrono::milliseconds>(now).count();
}

}  // namespace muster
