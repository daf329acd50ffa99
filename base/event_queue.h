#ifndef MUSTER_BASE_EVENT_QUEUE_H_
#define MUSTER_BASE_EVENT_QUEUE_H_

#include <cstddef>
#include <deque>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/mutex.h"

namespace muster {

// Hands events from many threads to the one thread that owns a machine. Bounded: a full queue makes
// the producers wait, so nothing is ever dropped. Closing it lets everybody go.
template <typename T>
class EventQueue {
 public:
  // `clock` outlives the queue.
  EventQueue(Clock* clock, size_t capacity) : clock_(clock), capacity_(capacity) {}

  // Any thread. Waits while the queue is full. False when it is closed: the event was not taken.
  bool Push(T event) {
    MutexLock lock(&mutex_);
    while (events_.size() >= capacity_ && !closed_) not_full_.Wait(&mutex_);
    if (closed_) return false;
    events_.push_back(std::move(event));
    not_empty_.SignalOne();
    return true;
  }

  // The consumer. The next event, or nothing: when `deadline` has come or the queue is closed and
  // empty.
  std::optional<T> Pop(Time deadline) {
    MutexLock lock(&mutex_);
    while (events_.empty() && !closed_ && clock_->Now() < deadline) {
      clock_->Wait(&mutex_, &not_empty_, deadline);
    }
    if (events_.empty()) return std::nullopt;
    std::optional<T> event(std::move(events_.front()));
    events_.pop_front();
    not_full_.SignalOne();
    return event;
  }

  // Any thread, any number of times. Events that are already in the queue can still be popped.
  void Close() {
    MutexLock lock(&mutex_);
    closed_ = true;
    not_empty_.SignalAll();
    not_full_.SignalAll();
  }

  bool closed() const {
    MutexLock lock(&mutex_);
    return closed_;
  }

 private:
  Clock* const clock_;
  const size_t capacity_;
  mutable Mutex mutex_;
  Condition not_empty_;
  Condition not_full_;
  std::deque<T> events_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace muster

#endif  // MUSTER_BASE_EVENT_QUEUE_H_
