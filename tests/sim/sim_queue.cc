#include "tests/sim/sim_queue.h"

#include <algorithm>
#include <utility>

namespace muster::sim {

void SimQueue::At(Time time, std::function<void()> action) {
  heap_.push_back({std::max(time, now_), ++sequence_, std::move(action)});
  std::push_heap(heap_.begin(), heap_.end());
}

bool SimQueue::RunNext() {
  if (heap_.empty()) return false;
  std::pop_heap(heap_.begin(), heap_.end());
  Entry entry = std::move(heap_.back());
  heap_.pop_back();
  if (entry.time != now_) at_this_time_ = 0;
  now_ = entry.time;
  ++at_this_time_;
  ++sequence_done_;
  entry.action();
  return true;
}

uint64_t SimRandom::Next() {
  state_ += 0x9e3779b97f4a7c15;
  uint64_t mixed = state_;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
  return mixed ^ (mixed >> 31);
}

bool SimRandom::Chance(double probability) {
  return static_cast<double>(Next() >> 11) * 0x1p-53 < probability;
}

int64_t SimRandom::Between(int64_t least, int64_t most) {
  return least + static_cast<int64_t>(Next() % static_cast<uint64_t>(most - least + 1));
}

Duration SimRandom::Between(Duration least, Duration most) {
  return Duration(Between(least.count(), most.count()));
}

}  // namespace muster::sim
