#include "tests/fakes/fake_clock.h"

#include <algorithm>
#include <vector>

namespace muster {

void FakeClock::Wait(Mutex* mutex, Condition* condition, Time deadline) {
  uint64_t ticket = 0;
  {
    MutexLock lock(&mutex_);
    if (now_ >= deadline) return;
    ticket = ++last_ticket_;
    waiters_[ticket] = {mutex, condition, deadline};
    changed_.SignalAll();
  }
  condition->Wait(mutex);
  MutexLock lock(&mutex_);
  waiters_.erase(ticket);
  changed_.SignalAll();
}

void FakeClock::AwaitWaiter() {
  MutexLock lock(&mutex_);
  AwaitWaiterLocked();
}

void FakeClock::AwaitWaiterLocked() {
  while (waiters_.empty()) changed_.Wait(&mutex_);
}

void FakeClock::Advance(Duration span) {
  const Time target = Now() + span;
  for (;;) {
    Time next = kNever;
    {
      MutexLock lock(&mutex_);
      AwaitWaiterLocked();
      for (const auto& [ticket, waiter] : waiters_) next = std::min(next, waiter.deadline);
    }
    if (next > target) break;
    MoveTo(next);
    if (next == target) return;
  }
  MoveTo(target);
}

void FakeClock::Jump(Duration span) { MoveTo(Now() + span); }

void FakeClock::MoveTo(Time time) {
  std::vector<Waiter> due;
  std::vector<uint64_t> tickets;
  {
    MutexLock lock(&mutex_);
    now_ = std::max(now_, time);
    for (const auto& [ticket, waiter] : waiters_) {
      if (waiter.deadline > now_) continue;
      due.push_back(waiter);
      tickets.push_back(ticket);
    }
  }
  // A waiter holds its mutex from before it registers until it waits, so the signal cannot come too
  // early.
  for (const Waiter& waiter : due) {
    MutexLock lock(waiter.mutex);
    waiter.condition->SignalAll();
  }
  MutexLock lock(&mutex_);
  const auto is_waiting = [&](uint64_t ticket) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return waiters_.count(ticket) != 0;
  };
  while (std::any_of(tickets.begin(), tickets.end(), is_waiting)) changed_.Wait(&mutex_);
}

}  // namespace muster
