#ifndef MUSTER_TESTS_SIM_SIM_QUEUE_H_
#define MUSTER_TESTS_SIM_SIM_QUEUE_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "base/time.h"

namespace muster::sim {

// The simulated clock: what is to happen, in the order of time and, at one time, of arrival.
class SimQueue {
 public:
  Time now() const { return now_; }

  // A time in the past means now, after all that is due already.
  void At(Time time, std::function<void()> action);
  void After(Duration delay, std::function<void()> action) { At(now_ + delay, std::move(action)); }

  // Advances to the next action and performs it. False when there is none.
  bool RunNext();

  // Actions performed so far, and those of them at the present time.
  uint64_t actions() const { return sequence_done_; }
  uint64_t actions_at_this_time() const { return at_this_time_; }

 private:
  struct Entry {
    Time time;
    uint64_t sequence;
    std::function<void()> action;

    // std::push_heap keeps the greatest first.
    bool operator<(const Entry& other) const {
      return time != other.time ? time > other.time : sequence > other.sequence;
    }
  };

  Time now_{std::chrono::hours(1)};
  uint64_t sequence_ = 0;
  uint64_t sequence_done_ = 0;
  uint64_t at_this_time_ = 0;
  std::vector<Entry> heap_;
};

// Random numbers that are the same on every platform (splitmix64).
class SimRandom {
 public:
  explicit SimRandom(uint64_t seed) : state_(seed) {}

  uint64_t Next();
  bool Chance(double probability);
  int64_t Between(int64_t least, int64_t most);  // both included
  Duration Between(Duration least, Duration most);

 private:
  uint64_t state_;
};

}  // namespace muster::sim

#endif  // MUSTER_TESTS_SIM_SIM_QUEUE_H_
