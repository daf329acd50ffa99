#include "worker_sdk/term_watch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>

#include <atomic>
#include <utility>

namespace muster {
namespace {

std::atomic<int> term_fd = -1;

void OnTerm(int) {
  const int before = errno;
  eventfd_write(term_fd.load(), 1);
  errno = before;
}

bool NothingChosen() {
  struct sigaction now {};
  return sigaction(SIGTERM, nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) == 0 &&
         now.sa_handler == SIG_DFL;
}

}  // namespace

TermWatch::TermWatch(std::function<void()> last_words) : last_words_(std::move(last_words)) {
  if (term_fd.load() >= 0 || !NothingChosen()) return;
  told_.reset(eventfd(0, EFD_CLOEXEC));
  stop_.reset(eventfd(0, EFD_CLOEXEC));
  if (!told_.valid() || !stop_.valid()) return;
  thread_ = std::thread([this] { Watch(); });
  term_fd = told_.get();
  struct sigaction action {};
  action.sa_handler = OnTerm;
  action.sa_flags = SA_RESTART;
  sigaction(SIGTERM, &action, nullptr);
}

TermWatch::~TermWatch() {
  if (!thread_.joinable()) return;
  signal(SIGTERM, SIG_DFL);
  eventfd_write(stop_.get(), 1);
  thread_.join();
  term_fd = -1;
}

void TermWatch::Watch() {
  pollfd ready[] = {{told_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
  while (poll(ready, 2, -1) < 0 && errno == EINTR) {
  }
  // Told and stopped at once: the signal is not to be lost.
  if ((ready[0].revents & POLLIN) == 0) return;
  last_words_();
  signal(SIGTERM, SIG_DFL);
  kill(getpid(), SIGTERM);
}

}  // namespace muster
