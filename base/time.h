#ifndef MUSTER_BASE_TIME_H_
#define MUSTER_BASE_TIME_H_

#include <chrono>

namespace muster {

// A span of time. Literals: `5s`, `100ms` (using namespace std::chrono_literals).
using Duration = std::chrono::nanoseconds;

// The tag of the one clock that decisions are made by: monotonic, of this process only. A type of
// its own, so that a wall clock or another machine's time cannot be compared with it
// (docs/decisions/001-time-is-an-argument.md). It has no now(): machines get the time as an
// argument, shells ask a Clock (base/clock.h).
struct MonotonicTag {
  using rep = Duration::rep;
  using period = Duration::period;
  using duration = Duration;
  static constexpr bool is_steady = true;
};

// A moment on the monotonic clock.
using Time = std::chrono::time_point<MonotonicTag, Duration>;

// "No deadline": later than every moment that a clock will show.
inline constexpr Time kNever = Time::max();

}  // namespace muster

#endif  // MUSTER_BASE_TIME_H_
