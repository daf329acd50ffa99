#ifndef MUSTER_TESTS_SIM_SIM_CLOCK_H_
#define MUSTER_TESTS_SIM_SIM_CLOCK_H_

#include <chrono>

#include "base/time.h"

namespace muster::sim {

// The clock of one process, which began at another time and runs at another speed than the world's.
struct SimClock {
  Duration offset{};
  int drift = 0;  // in parts per million

  Time Local(Time world) const {
    const Duration since = world.time_since_epoch();
    return Time(since + offset + since / 1000000 * drift);
  }

  // The earliest moment at which Local() is not before `local`.
  Time World(Time local) const {
    const Duration shown = local.time_since_epoch() - offset;
    Duration since = shown / (1000000 + drift) * 1000000;
    while (since + since / 1000000 * drift < shown) since += std::chrono::microseconds(1);
    return Time(since);
  }
};

}  // namespace muster::sim

#endif  // MUSTER_TESTS_SIM_SIM_CLOCK_H_
