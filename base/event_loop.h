#ifndef MUSTER_BASE_EVENT_LOOP_H_
#define MUSTER_BASE_EVENT_LOOP_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "base/time.h"
#include "base/unique_fd.h"

namespace muster {

// One thread's epoll: descriptors and what to do when they are ready. Not thread-safe; everything
// happens on the thread that calls RunOnce. Level-triggered. Aborts the process when the kernel
// refuses an epoll descriptor (nothing could work).
class EventLoop {
 public:
  EventLoop();

  // `events` are EPOLLIN, EPOLLOUT, ...; `on_ready` gets those that came (with EPOLLHUP and
  // EPOLLERR). `fd` stays the caller's. A second Watch of the same fd replaces events and callback.
  void Watch(int fd, uint32_t events, std::function<void(uint32_t)> on_ready);

  // Must come before the fd is closed. Allowed from within a callback, also from the fd's own.
  void Unwatch(int fd);

  // Waits until a descriptor is ready or `deadline` has come, runs the callbacks of those that are
  // ready, and returns.
  void RunOnce(Time deadline);

  // The monotonic clock (CLOCK_MONOTONIC) that deadlines are on.
  static Time Now();

 private:
  UniqueFd epoll_;
  std::map<int, std::shared_ptr<std::function<void(uint32_t)>>> callbacks_;
};

// For poll(2) without a loop: milliseconds from now to `deadline`, rounded up, 0 when it is past.
// At most 1000 s: who waits longer asks again.
int MillisecondsTo(Time deadline);

}  // namespace muster

#endif  // MUSTER_BASE_EVENT_LOOP_H_
