#include "agent/worker_table.h"

#include <algorithm>

namespace muster {

bool WorkerTable::AllStarted() const {
  return std::all_of(workers_.begin(), workers_.end(),
                     [](const Worker& w) { return w.state != Worker::State::kStarting; });
}

bool WorkerTable::AllReady() const {
  return std::all_of(workers_.begin(), workers_.end(), [](const Worker& w) { return w.is_ready; });
}

bool WorkerTable::AllEnded() const {
  return std::all_of(workers_.begin(), workers_.end(),
                     [](const Worker& w) { return w.state == Worker::State::kEnded; });
}

}  // namespace muster
