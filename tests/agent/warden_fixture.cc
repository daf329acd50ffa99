#include "tests/agent/warden_fixture.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

namespace muster {
namespace {

bool IsReadable(int fd, Duration patience) {
  pollfd wait{fd, POLLIN, 0};
  const auto span = std::chrono::duration_cast<std::chrono::milliseconds>(patience);
  return poll(&wait, 1, static_cast<int>(span.count())) == 1;
}

}  // namespace

Watched::Watched(int pid) : pidfd_(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))) {}

bool Watched::Ends() const { return !pidfd_.valid() || IsReadable(pidfd_.get(), kPatience); }

bool Watched::IsAlive() const {
  return pidfd_.valid() && !IsReadable(pidfd_.get(), Duration::zero());
}

Output::Output() {
  std::array<int, 2> ends;
  if (pipe2(ends.data(), O_CLOEXEC) != 0) abort();
  reader_.reset(ends[0]);
  writer.reset(ends[1]);
}

bool Output::Read() {
  writer.reset();
  if (!IsReadable(reader_.get(), kPatience)) {
    ADD_FAILURE() << "nothing came after: " << buffer_;
    return false;
  }
  std::array<char, 4096> bytes;
  const ssize_t got = read(reader_.get(), bytes.data(), bytes.size());
  if (got <= 0) return false;
  buffer_.append(bytes.data(), static_cast<size_t>(got));
  return true;
}

std::string Output::Line() {
  while (buffer_.find('\n') == std::string::npos) {
    if (!Read()) return std::exchange(buffer_, "");
  }
  const size_t end = buffer_.find('\n');
  const std::string line = buffer_.substr(0, end);
  buffer_.erase(0, end + 1);
  return line;
}

std::string Output::All() {
  while (Read()) {
  }
  return std::exchange(buffer_, "");
}

void WardenTest::Start(const WardenOptions& options) {
  absl::StatusOr<WardenProcess> warden = ForkWarden(options);
  ASSERT_TRUE(warden.ok()) << warden.status();
  host_ = std::make_unique<WardenHost>(
      loop_, *std::move(warden), [this](const WardenAnswer& answer) { answers_.push_back(answer); },
      [this] { lost_ = true; });
}

void WardenTest::Bash(uint32_t id, const std::string& script, Output& output,
                      std::vector<std::string> env) {
  Spawn({id, {"/bin/bash", "-c", script}, std::move(env)}, output);
}

void WardenTest::Spawn(SpawnRequest request, Output& output) {
  host_->Spawn(std::move(request), {output.writer.get(), output.writer.get()});
}

bool WardenTest::WaitFor(const std::function<bool()>& is_so) {
  const Time deadline = EventLoop::Now() + kPatience;
  while (!is_so()) {
    if (EventLoop::Now() >= deadline) return false;
    loop_.RunOnce(deadline);
  }
  return true;
}

}  // namespace muster
