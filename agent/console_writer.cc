#include "agent/console_writer.h"

#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "base/log.h"

namespace muster {

ConsoleWriter::ConsoleWriter(EventLoop& loop, int fd, Duration long_line_hold)
    : loop_(loop), fd_(fd), long_line_hold_(long_line_hold) {}

ConsoleWriter::~ConsoleWriter() {
  if (watching_) loop_.Unwatch(fd_.poll_fd());
  DisarmHold();
}

void ConsoleWriter::Write(std::string_view text) {
  if (!flushed()) {
    backlog_ += text;
    return;
  }
  while (!text.empty()) {
    const ssize_t written = fd_.TryWrite(text);
    if (written > 0) {
      text.remove_prefix(static_cast<size_t>(written));
      continue;
    }
    if (written == 0 || errno != EAGAIN) return Drop(errno, text.size());
    backlog_ = text;
    sent_ = 0;
    loop_.Watch(fd_.poll_fd(), EPOLLOUT, [this](uint32_t) { OnTaken(); });
    watching_ = true;
    return;
  }
}

void ConsoleWriter::WriteBacklog() {
  while (!flushed()) {
    const ssize_t written = fd_.TryWrite(std::string_view(backlog_).substr(sent_));
    if (written > 0) {
      sent_ += static_cast<size_t>(written);
      continue;
    }
    if (written < 0 && errno == EAGAIN) return;
    Drop(errno, backlog_.size() - sent_);
    sent_ = backlog_.size();
  }
  backlog_.clear();
  sent_ = 0;
  if (watching_) loop_.Unwatch(fd_.poll_fd());
  watching_ = false;
}

void ConsoleWriter::OnTaken() {
  WriteBacklog();
  CallWaiting();
}

void ConsoleWriter::CallWaiting() {
  // Who cannot go on yet stays ahead of those who ask again.
  std::vector<Waiting> before = std::exchange(waiting_, {});
  std::vector<Waiting> kept;
  for (Waiting& waiting : before) {
    if (OpenTo(waiting.writer)) {
      waiting.callback();
    } else {
      kept.push_back(std::move(waiting));
    }
  }
  waiting_.insert(waiting_.begin(), std::make_move_iterator(kept.begin()),
                  std::make_move_iterator(kept.end()));
}

void ConsoleWriter::CallWhenOpen(const void* writer, std::function<void()> callback) {
  waiting_.push_back({writer, std::move(callback)});
  if (owner_ != nullptr && owner_ != writer) ArmHold();
}

void ConsoleWriter::Claim(const void* writer, std::function<void()> give_up) {
  owner_ = writer;
  give_up_ = std::move(give_up);
  if (!waiting_.empty()) ArmHold();
}

void ConsoleWriter::Release(const void* writer) {
  if (owner_ != writer) return;
  owner_ = nullptr;
  give_up_ = nullptr;
  DisarmHold();
  CallWaiting();
}

void ConsoleWriter::Interrupt(const void* writer) {
  if (owner_ == nullptr || owner_ == writer) return;
  // A copy: it is replaced while it runs.
  const std::function<void()> give_up = give_up_;
  give_up();
}

void ConsoleWriter::Forget(const void* writer) {
  waiting_.erase(std::remove_if(waiting_.begin(), waiting_.end(),
                                [writer](const Waiting& w) { return w.writer == writer; }),
                 waiting_.end());
  Release(writer);
}

void ConsoleWriter::ArmHold() {
  if (hold_timer_.valid()) return;
  hold_timer_.reset(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!hold_timer_.valid()) return;
  // Zero would disarm it.
  const Duration hold = std::max(long_line_hold_, Duration(1));
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(hold);
  itimerspec timer{};
  timer.it_value.tv_sec = seconds.count();
  timer.it_value.tv_nsec = (hold - seconds).count();
  timerfd_settime(hold_timer_.get(), 0, &timer, nullptr);
  loop_.Watch(hold_timer_.get(), EPOLLIN, [this](uint32_t) { Interrupt(nullptr); });
}

void ConsoleWriter::DisarmHold() {
  if (!hold_timer_.valid()) return;
  loop_.Unwatch(hold_timer_.get());
  hold_timer_.reset();
}

bool ConsoleWriter::Flush(Time deadline, int interrupt_fd) {
  for (;;) {
    WriteBacklog();
    if (flushed()) return true;
    int timeout = -1;
    if (deadline != kNever) {
      const Duration left = deadline - EventLoop::Now();
      if (left <= Duration::zero()) return false;
      timeout = static_cast<int>(std::min<int64_t>(left / std::chrono::milliseconds(1) + 1, 60000));
    }
    pollfd wait_for[2] = {{fd_.poll_fd(), POLLOUT, 0}, {interrupt_fd, POLLIN, 0}};
    if (poll(wait_for, 2, timeout) > 0 && wait_for[1].revents != 0) return false;
  }
}

void ConsoleWriter::Drop(int error, size_t bytes) {
  if (lost_bytes_ == 0) {
    Log(LogLevel::kWarning, std::string("output of tee'd streams is dropped: the launcher's own "
                                        "stream does not take it: ") +
                                strerror(error));
  }
  lost_bytes_ += static_cast<int64_t>(bytes);
}

}  // namespace muster
