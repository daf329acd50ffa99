#include "tests/sim/sim_world.h"

#include <cinttypes>
#include <cstdio>

namespace muster::sim {
namespace {

std::string Stamp(Time time) {
  const int64_t micros =
      std::chrono::floor<std::chrono::microseconds>(time.time_since_epoch()).count();
  char text[40];
  snprintf(text, sizeof(text), "%6" PRId64 ".%06" PRId64, micros / 1000000 - 3600,
           micros % 1000000);
  return text;
}

}  // namespace

void SimWorld::Violate(const std::string& what) {
  if (!violation.empty()) return;
  violation = what;
  Trace("VIOLATION", what);
}

void SimWorld::Trace(const std::string& who, const std::string& what) {
  if (traces) trace.push_back(Stamp(queue.now()) + " " + who + ": " + what);
}

}  // namespace muster::sim
