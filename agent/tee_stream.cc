#include "agent/tee_stream.h"

#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "base/log.h"
#include "base/write_all.h"

namespace muster {
namespace {

constexpr size_t kReadBytes = 256 * 1024;
constexpr size_t kTailBytes = 16 * 1024;

std::string WallTime() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  tm utc{};
  gmtime_r(&now.tv_sec, &utc);
  char seconds[32];
  strftime(seconds, sizeof(seconds), "%Y-%m-%dT%H:%M:%S", &utc);
  char text[48];
  snprintf(text, sizeof(text), "%s.%03ldZ", seconds, now.tv_nsec / 1000000);
  return text;
}

}  // namespace

TeeStream::TeeStream(EventLoop& loop, TeeBuffers& buffers, UniqueFd pipe, TeeTargets targets,
                     const LinePrefix& prefix, PrefixValues values)
    : loop_(loop),
      buffers_(buffers),
      pipe_(std::move(pipe)),
      targets_(std::move(targets)),
      prefix_(prefix),
      values_(std::move(values)) {
  ExpandPrefix();
}

TeeStream::~TeeStream() {
  if (pipe_.valid()) loop_.Unwatch(pipe_.get());
  if (targets_.console != nullptr) targets_.console->Forget(this);
}

void TeeStream::Start() {
  started_ = true;
  if (!prefix_.has_pid() || !values_.pid.empty()) Watch();
}

void TeeStream::SetPid(int pid) {
  const bool waited = started_ && prefix_.has_pid() && values_.pid.empty();
  values_.pid = std::to_string(pid);
  ExpandPrefix();
  if (waited) Watch();
}

void TeeStream::ExpandPrefix() {
  prefix_text_ = prefix_.Expand(values_, prefix_.has_time() ? WallTime() : "");
}

void TeeStream::Watch() {
  if (!pipe_.valid()) return;
  loop_.Watch(pipe_.get(), EPOLLIN, [this](uint32_t) { OnReadable(); });
}

void TeeStream::Pause() {
  loop_.Unwatch(pipe_.get());
  targets_.console->CallWhenOpen(this, [this] { Watch(); });
}

void TeeStream::OnReadable() {
  if (targets_.console != nullptr && !targets_.console->OpenTo(this)) return Pause();
  if (ReadOnce(kReadBytes) == 0) End();
}

ssize_t TeeStream::ReadOnce(size_t bytes_max) {
  std::string& input = buffers_.input;
  if (input.size() < kReadBytes) input.resize(kReadBytes);
  const ssize_t size = read(pipe_.get(), input.data(), std::min(bytes_max, input.size()));
  if (size < 0) return errno == EAGAIN || errno == EINTR ? -1 : 0;
  if (size > 0) Pass(std::string_view(input.data(), static_cast<size_t>(size)), false);
  return size;
}

void TeeStream::TakeReadable() {
  int readable = 0;
  if (!pipe_.valid() || ioctl(pipe_.get(), FIONREAD, &readable) != 0) return;
  while (readable > 0) {
    const ssize_t size = ReadOnce(static_cast<size_t>(readable));
    if (size <= 0) return;
    readable -= static_cast<int>(size);
  }
}

void TeeStream::Close() {
  TakeReadable();
  if (pipe_.valid()) End();
}

void TeeStream::Pass(std::string_view data, bool is_end) {
  if (targets_.file.valid()) WriteFile(data);
  if (targets_.keep_tail) RememberTail(data);
  if (prefix_.has_time()) ExpandPrefix();
  buffers_.lines.clear();
  buffers_.matches.clear();
  const LineFilter filter{&targets_.filters, &buffers_.matches};
  const LineFilter* used_filter = targets_.filtered_fd >= 0 ? &filter : nullptr;
  if (is_end) {
    splitter_.Finish(prefix_text_, &buffers_.lines, used_filter);
  } else {
    splitter_.Feed(data, prefix_text_, &buffers_.lines, used_filter);
  }
  if (!buffers_.matches.empty()) WriteFiltered(buffers_.matches);
  Show(buffers_.lines);
}

void TeeStream::Show(std::string_view text) {
  ConsoleWriter* console = targets_.console;
  if (console == nullptr || text.empty()) return;
  console->Interrupt(this);
  console->Write(text);
  if (splitter_.in_long_line()) {
    console->Claim(this, [this] { GiveUpLine(); });
  } else {
    console->Release(this);
  }
}

void TeeStream::GiveUpLine() {
  std::string end;
  splitter_.Break(&end);
  targets_.console->Write(end);
  targets_.console->Release(this);
}

void TeeStream::End() {
  Pass("", true);
  loop_.Unwatch(pipe_.get());
  pipe_.reset();
  targets_.file.Close();
  if (targets_.console != nullptr) targets_.console->Forget(this);
}

void TeeStream::WriteFile(std::string_view data) {
  size_t written = 0;
  const int error = targets_.file.Write(data, &written);
  if (error == 0) return;
  const int64_t lost = static_cast<int64_t>(data.size() - written);
  if (buffers_.file_bytes_lost == 0) {
    Log(LogLevel::kWarning, "log file " + targets_.file.path() + ": " + strerror(error) +
                                "; output is lost there, and still shown on the console");
  }
  file_bytes_lost_ += lost;
  buffers_.file_bytes_lost += lost;
}

void TeeStream::WriteFiltered(std::string_view data) {
  const int error = WriteAll(targets_.filtered_fd, data);
  if (error != 0 && !filtered_failed_) {
    filtered_failed_ = true;
    Log(LogLevel::kWarning,
        std::string("file of filtered lines: ") + strerror(error) + "; lines are lost there");
  }
}

void TeeStream::RememberTail(std::string_view data) {
  if (data.size() > kTailBytes) {
    data.remove_prefix(data.size() - kTailBytes);
    tail_cut_ = true;
    tail_.clear();
  }
  tail_ += data;
  if (tail_.size() > 2 * kTailBytes) {
    tail_.erase(0, tail_.size() - kTailBytes);
    tail_cut_ = true;
  }
}

std::string TeeStream::Tail(int lines) const {
  return std::string(LastLines(tail_, lines, tail_cut_));
}

}  // namespace muster
