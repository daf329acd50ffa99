#include "agent/worker_table.h"

#include <algorithm>

namespace muster {

void WorkerTable::Reached(Worker* worker, int64_t step, Time now) {
  worker->step = step;
  int64_t least = step;
  for (const Worker& other : workers_) {
    if (other.step && other.state != Worker::State::kEnded) least = std::min(least, *other.step);
  }
  if (!slowest_ || slowest_->step != least) slowest_ = Slowest{least, now};
}

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
