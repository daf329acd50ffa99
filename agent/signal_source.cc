#include "agent/signal_source.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace muster {
namespace {

bool IsIgnored(int signal) {
  struct sigaction action {};
  sigaction(signal, nullptr, &action);
  return action.sa_handler == SIG_IGN;
}

}  // namespace

SignalSource::SignalSource(EventLoop& loop, const std::vector<int>& handled,
                           const std::vector<int>& forwarded,
                           std::function<void(SignalReceived)> on_signal,
                           std::function<void()> on_suspend)
    : forwarded_(forwarded), on_signal_(std::move(on_signal)), on_suspend_(std::move(on_suspend)) {
  sigset_t wanted;
  sigemptyset(&wanted);
  for (int signal : handled) {
    if (!IsIgnored(signal)) sigaddset(&wanted, signal);
  }
  for (int signal : forwarded) {
    if (!IsIgnored(signal)) sigaddset(&wanted, signal);
  }
  suspends_ = sigismember(&wanted, SIGTSTP) == 0 && !IsIgnored(SIGTSTP);
  if (suspends_) sigaddset(&wanted, SIGTSTP);
  sigprocmask(SIG_BLOCK, &wanted, nullptr);
  fd_.reset(signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
  loop.Watch(fd_.get(), EPOLLIN, [this](uint32_t) { Read(); });
}

void SignalSource::Read() {
  signalfd_siginfo info;
  while (read(fd_.get(), &info, sizeof(info)) == sizeof(info)) {
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGTSTP && suspends_) {
      on_suspend_();
      continue;
    }
    const bool forward_only = std::count(forwarded_.begin(), forwarded_.end(), signal) > 0;
    on_signal_(SignalReceived{signal, static_cast<int>(info.ssi_pid), forward_only});
  }
}

void SignalSource::Suspend() {
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTSTP);
  raise(SIGTSTP);
  sigprocmask(SIG_UNBLOCK, &stop, nullptr);  // here it stops, with all its threads
  sigprocmask(SIG_BLOCK, &stop, nullptr);
}

}  // namespace muster
