#ifndef MUSTER_RENDEZVOUS_HISTOGRAM_H_
#define MUSTER_RENDEZVOUS_HISTOGRAM_H_

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/time.h"

namespace muster {

// How often spans of time fell below each of these bounds, from 1 ms to 10 min. A plain value.
struct Histogram {
  static constexpr std::array<double, 17> kBounds = {
      0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 600};

  void Add(Duration span) {
    const double seconds = std::chrono::duration<double>(span).count();
    for (size_t i = 0; i < kBounds.size(); ++i) below[i] += seconds <= kBounds[i] ? 1 : 0;
    sum += seconds;
    ++count;
  }

  std::array<uint64_t, kBounds.size()> below{};  // cumulative: at most kBounds[i] seconds
  double sum = 0;                                // seconds
  uint64_t count = 0;
};

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_HISTOGRAM_H_
