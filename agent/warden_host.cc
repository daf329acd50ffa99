#include "agent/warden_host.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/wait.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/process_tree.h"
#include "agent/worker_group.h"
#include "base/log.h"

namespace muster {
namespace {

// As the supervisor machine's: how long SIGKILL may take to show.
constexpr Duration kKillPatience = std::chrono::seconds(10);

void NameWhatHangs(const std::vector<int>& pids) {
  for (int pid : pids) {
    Log(LogLevel::kError, absl::StrCat("SIGKILL does not end ", ProcessText(pid),
                                       ": it hangs in the kernel and stays behind"));
  }
}

}  // namespace

WardenHost::WardenHost(EventLoop& loop, WardenProcess warden,
                       std::function<void(const WardenAnswer&)> on_answer,
                       std::function<void()> on_lost)
    : loop_(loop),
      pid_(warden.pid),
      channel_(std::move(warden.socket)),
      on_answer_(std::move(on_answer)),
      on_lost_(std::move(on_lost)) {
  Watch();
}

WardenHost::~WardenHost() {
  if (lost_) return;
  loop_.Unwatch(channel_.fd());
  channel_ = WardenChannel(UniqueFd());
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  // The warden has sent SIGKILL and waited; what it had to leave has come to us.
  if (waitpid(-1, nullptr, WNOHANG) == 0) NameWhatHangs(Descendants());
}

void WardenHost::Watch() {
  uint32_t events = EPOLLIN;
  if (channel_.wants_write()) events |= EPOLLOUT;
  loop_.Watch(channel_.fd(), events, [this](uint32_t) { OnReady(); });
}

int WardenHost::Send(const WardenRequest& request, const std::vector<int>& fds) {
  if (lost_) return 0;
  const int error = channel_.Send(Encode(request), fds);
  if (channel_.wants_write()) Watch();
  return error;
}

void WardenHost::Spawn(SpawnRequest request, const std::vector<int>& fds) {
  request.fd_count = static_cast<uint8_t>(fds.size());
  const uint32_t id = request.id;
  if (const int error = Send(std::move(request), fds); error != 0) {
    on_answer_(NotStartedAnswer{id, error, false});
  }
}

void WardenHost::Signal(const SignalRequest& request) {
  Send(request);
  // A warden that somebody stopped would let the workers outlive every deadline.
  kill(pid_, SIGCONT);
}

void WardenHost::SetLastWill(const LastWillRequest& will) { Send(will); }
void WardenHost::SetFence(const FenceRequest& fence) { Send(fence); }

void WardenHost::OnReady() {
  const bool was_writing = channel_.wants_write();
  channel_.Flush();
  const bool alive = channel_.Fill();
  while (const std::optional<std::string> frame = channel_.NextFrame()) {
    if (const std::optional<WardenAnswer> answer = DecodeAnswer(*frame)) on_answer_(*answer);
  }
  if (!alive) {
    lost_ = true;
    loop_.Unwatch(channel_.fd());
    SweepAfterWarden();
    on_lost_();
    return;
  }
  if (was_writing != channel_.wants_write()) Watch();
}

void WardenHost::SweepAfterWarden() {
  kill(pid_, SIGKILL);  // it may only have closed its socket
  WorkerGroup group = WorkerGroup::Of(OwnGroupFolder(), pid_);
  group.Kill();
  NameWhatHangs(EndDescendants(SIGKILL, kKillPatience));
  group.Remove();
}

}  // namespace muster
