#include "rendezvous/local_rendezvous.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <variant>

namespace muster {
namespace {

// A deadline that is served later than this was missed because the process did not run.
constexpr Duration kOversleep = std::chrono::seconds(1);

UniqueFd Checked(int fd, const char* what) {
  if (fd >= 0) return UniqueFd(fd);
  fprintf(stderr, "muster: cannot create %s: %s; raise the limit of open files (ulimit -n)\n", what,
          strerror(errno));
  abort();
}

void Watch(int epoll, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) abort();
}

}  // namespace

LocalRendezvous::LocalRendezvous(Options options)
    : options_(std::move(options)),
      machine_(options_.job_id, options_.instance, options_.seed),
      epoll_(Checked(epoll_create1(EPOLL_CLOEXEC), "an epoll descriptor")),
      queued_(Checked(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "an eventfd")),
      timer_(Checked(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK), "a timerfd")) {
  Watch(epoll_.get(), queued_.get());
  Watch(epoll_.get(), timer_.get());
  last_step_ = options_.now();
}

void LocalRendezvous::Open() { stream_ = ++last_stream_; }

void LocalRendezvous::Send(AgentMessage message) {
  if (stream_ == 0) return;
  if (auto* hello = std::get_if<Hello>(&message)) {
    // Agent and master live and die together, so the agent sends no heartbeats and its silence
    // means nothing.
    hello->settings.keep_alive_interval = kLongestTimeout;
    hello->settings.keep_alive_max_attempt = 1;
  }
  Step(MessageArrived{stream_, std::move(message), ""});
}

void LocalRendezvous::Finish() {
  if (stream_ != 0) Step(StreamBroken{std::exchange(stream_, 0), true});
  Queue(RendezvousFinished{});
}

std::optional<ClientEvent> LocalRendezvous::Receive() {
  RunDeadline();
  if (events_.empty()) return std::nullopt;
  ClientEvent event = std::move(events_.front());
  events_.pop_front();
  if (events_.empty()) {
    eventfd_t ignored;
    eventfd_read(queued_.get(), &ignored);
  }
  return event;
}

void LocalRendezvous::RunDeadline() {
  const Time deadline = machine_.NextDeadline();
  const Time now = options_.now();
  if (deadline <= now) {
    // Suspended or stopped for a while: the agent, who is in this very process, was too.
    if (now - deadline > kOversleep) Step(WokeUp{now - last_step_});
    Step(DeadlinePassed{});
  }
  ArmTimer();
}

void LocalRendezvous::Step(const RoundEvent& event) {
  last_step_ = std::max(last_step_, options_.now());
  for (RoundEffect& effect : machine_.Step(last_step_, event)) {
    if (auto* send = std::get_if<SendTo>(&effect)) {
      if (send->stream == stream_) Queue(std::move(send->message));
    } else if (const auto* close = std::get_if<CloseStreamTo>(&effect)) {
      if (close->stream != stream_) continue;
      stream_ = 0;
      Queue(StreamEnded{false, "the master in this process ended the stream"});
    } else if (const auto* decided = std::get_if<Decided>(&effect)) {
      if (options_.log) options_.log(decided->reason);
    }
  }
  ArmTimer();
}

void LocalRendezvous::ArmTimer() {
  const Time deadline = machine_.NextDeadline();
  if (deadline == armed_for_) return;
  armed_for_ = deadline;
  itimerspec when{};
  if (deadline != kNever) {
    // Relative, because the injected clock need not be the kernel's; zero would disarm the timer.
    const Duration wait = std::max(deadline - options_.now(), Duration(1));
    const auto seconds = std::chrono::floor<std::chrono::seconds>(wait);
    when.it_value.tv_sec = seconds.count();
    when.it_value.tv_nsec = (wait - seconds).count();
  }
  timerfd_settime(timer_.get(), 0, &when, nullptr);
}

void LocalRendezvous::Queue(ClientEvent event) {
  if (events_.empty()) eventfd_write(queued_.get(), 1);
  events_.push_back(std::move(event));
}

}  // namespace muster
