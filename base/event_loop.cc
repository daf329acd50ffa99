#include "base/event_loop.h"

#include <sys/epoll.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <utility>

namespace muster {

EventLoop::EventLoop() : epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  if (!epoll_.valid()) abort();
}

void EventLoop::Watch(int fd, uint32_t events, std::function<void(uint32_t)> on_ready) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  const bool known = callbacks_.count(fd) > 0;
  if (epoll_ctl(epoll_.get(), known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event) != 0) abort();
  callbacks_[fd] = std::make_shared<std::function<void(uint32_t)>>(std::move(on_ready));
}

void EventLoop::Unwatch(int fd) {
  if (callbacks_.erase(fd) > 0) epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

void EventLoop::RunOnce(Time deadline) {
  std::array<epoll_event, 64> ready;
  int count = 0;
  do {
    timespec timeout{};
    if (deadline != kNever) {
      const Duration left = std::max(deadline - Now(), Duration::zero());
      const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
      timeout.tv_sec = seconds.count();
      timeout.tv_nsec = (left - seconds).count();
    }
    count = epoll_pwait2(epoll_.get(), ready.data(), static_cast<int>(ready.size()),
                         deadline == kNever ? nullptr : &timeout, nullptr);
    // SIGCONT interrupts: what became ready while this process was stopped is served before the
    // deadline is taken for missed.
  } while (count < 0 && errno == EINTR);
  for (int i = 0; i < count; ++i) {
    // An earlier callback of this round may have removed this one.
    auto it = callbacks_.find(ready[i].data.fd);
    if (it == callbacks_.end()) continue;
    const auto callback = it->second;
    (*callback)(ready[i].events);
  }
}

Time EventLoop::Now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return Time(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
}

int MillisecondsTo(Time deadline) {
  constexpr int64_t kLongestMs = 1'000'000;
  const Duration left = std::max(deadline - EventLoop::Now(), Duration::zero());
  const int64_t ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  return static_cast<int>(std::min(ms, kLongestMs));
}

}  // namespace muster
