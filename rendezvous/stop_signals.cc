#include "rendezvous/stop_signals.h"

#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/event_loop.h"

namespace muster {

StopSignals::StopSignals() {
  sigemptyset(&signals_);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals_, number);
  sigprocmask(SIG_BLOCK, &signals_, nullptr);
  fd_ = UniqueFd(signalfd(-1, &signals_, SFD_CLOEXEC | SFD_NONBLOCK));
}

int StopSignals::Await(const std::function<void()>& on_hangup, Duration pulse,
                       const std::function<void()>& on_pulse) const {
  EventLoop loop;
  int signal = 0;
  loop.Watch(fd_.get(), EPOLLIN, [&](uint32_t) {
    signalfd_siginfo info{};
    if (read(fd_.get(), &info, sizeof(info)) != sizeof(info)) return;
    if (info.ssi_signo == SIGHUP) {
      on_hangup();
    } else {
      signal = static_cast<int>(info.ssi_signo);
    }
  });
  Time pulse_at = pulse > Duration::zero() ? EventLoop::Now() : kNever;
  while (signal == 0) {
    if (EventLoop::Now() >= pulse_at) {
      on_pulse();
      pulse_at = EventLoop::Now() + pulse;
    }
    loop.RunOnce(pulse_at);
  }
  return signal;
}

void StopSignals::Unblock() const { sigprocmask(SIG_UNBLOCK, &signals_, nullptr); }

}  // namespace muster
