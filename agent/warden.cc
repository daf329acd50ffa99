#include "agent/warden.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/process_tree.h"
#include "agent/spawn.h"
#include "agent/warden_channel.h"
#include "agent/warden_protocol.h"
#include "agent/worker_group.h"

namespace muster {
namespace {

// How long KILL may take to show before the warden gives up on what cannot be killed
// (uninterruptible sleep).
constexpr Duration kKillPatience = std::chrono::seconds(5);

Time Now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return Time(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
}

class Warden {
 public:
  Warden(UniqueFd socket, UniqueFd child_signals, SignalState signals, Duration orphan_grace,
         WorkerGroup group)
      : channel_(std::move(socket)),
        child_signals_(std::move(child_signals)),
        signals_(std::move(signals)),
        orphan_grace_(orphan_grace),
        group_(std::move(group)) {}

  [[noreturn]] void Run() {
    while (true) {
      const bool agent_is_alive = WaitForWork(fence_);
      while (std::optional<std::string> frame = channel_.NextFrame()) Serve(*frame);
      if (!agent_is_alive) LastRites();
      if (Now() >= fence_) {
        fence_ = kNever;
        Signal({SIGKILL, true});
      }
      Reap();
    }
  }

 private:
  // Waits for the agent, a child's end or `deadline`. False when the agent is gone.
  bool WaitForWork(Time deadline) {
    pollfd waits[2] = {{channel_.fd(), POLLIN, 0}, {child_signals_.get(), POLLIN, 0}};
    if (channel_.wants_write()) waits[0].events |= POLLOUT;
    if (agent_is_gone_) waits[0].fd = -1;
    timespec timeout{};
    const Duration left = std::max(deadline - Now(), Duration::zero());
    timeout.tv_sec = std::chrono::duration_cast<std::chrono::seconds>(left).count();
    timeout.tv_nsec = (left % std::chrono::seconds(1)).count();
    ppoll(waits, 2, deadline == kNever ? nullptr : &timeout, nullptr);
    if (waits[1].revents != 0) {
      signalfd_siginfo ignored[16];
      while (read(child_signals_.get(), ignored, sizeof(ignored)) > 0) {
      }
    }
    if (waits[0].revents != 0) channel_.Flush();
    if ((waits[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0) agent_is_gone_ = !channel_.Fill();
    return !agent_is_gone_;
  }

  void Serve(const std::string& frame) {
    const std::optional<WardenRequest> request = DecodeRequest(frame);
    if (!request) LastRites();  // not our agent any more
    if (const auto* spawn = std::get_if<SpawnRequest>(&*request)) {
      Spawn(*spawn);
    } else if (const auto* signal = std::get_if<SignalRequest>(&*request)) {
      Signal(*signal);
    } else if (const auto* fence = std::get_if<FenceRequest>(&*request)) {
      fence_ = Time(std::chrono::nanoseconds(fence->at_ns));
    } else {
      last_will_ = std::get<LastWillRequest>(*request);
    }
  }

  void Spawn(const SpawnRequest& request) {
    const std::optional<std::vector<UniqueFd>> fds = channel_.TakeFds(request.fd_count);
    if (!fds) LastRites();
    signals_.group = group_.ForNextWorker();
    const SpawnResult result = SpawnWorker(request.argv, request.env, *fds, request.cpus, signals_);
    if (result.error != 0) {
      channel_.Send(Encode(NotStartedAnswer{request.id, result.error, result.forked}));
      return;
    }
    killing_ = false;
    has_children_ = true;
    ids_[result.pid] = request.id;
    channel_.Send(Encode(StartedAnswer{request.id, result.pid}));
  }

  void Signal(const SignalRequest& request) {
    if (request.whole_tree) {
      // Until the next spawn: a weaker signal that follows does not call off the killing.
      killing_ = killing_ || request.signal == SIGKILL;
      if (request.signal == SIGKILL) group_.Kill();
      SignalDescendants(request.signal);
    } else {
      for (const auto& [pid, id] : ids_) {
        if (request.only < 0 || static_cast<uint32_t>(request.only) == id)
          kill(pid, request.signal);
      }
    }
  }

  void Reap() {
    std::vector<ExitedAnswer> exited;
    int reaped = 0;
    int pid = 0;
    int status = 0;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
      ++reaped;
      auto it = ids_.find(pid);
      if (it == ids_.end()) continue;
      exited.push_back({it->second, status, false});
      ids_.erase(it);
    }
    const bool empty = pid < 0 && errno == ECHILD;
    const bool became_empty = empty && has_children_;
    has_children_ = !empty;
    if (became_empty && !exited.empty()) exited.back().tree_empty = true;
    for (const ExitedAnswer& answer : exited) channel_.Send(Encode(answer));
    if (became_empty && exited.empty()) channel_.Send(Encode(EmptyAnswer{}));
    // What was forked while the tree was being killed has come to us with its parent's death.
    if (killing_ && reaped > 0 && !empty) SignalDescendants(SIGKILL);
  }

  // True when nothing is left before `deadline`.
  bool ReapUntil(Time deadline) {
    Reap();
    while (has_children_ && Now() < deadline) {
      WaitForWork(deadline);
      Reap();
    }
    return !has_children_;
  }

  [[noreturn]] void LastRites() {
    agent_is_gone_ = true;
    has_children_ = true;
    if (!ReapUntil(Now())) {
      SignalDescendants(SIGTERM);
      if (!ReapUntil(std::min(Now() + orphan_grace_, fence_))) {
        killing_ = true;
        group_.Kill();
        SignalDescendants(SIGKILL);
        ReapUntil(Now() + kKillPatience);
      }
    }
    group_.Remove();
    std::error_code ignored;
    if (!last_will_.folder.empty()) std::filesystem::remove_all(last_will_.folder, ignored);
    if (!last_will_.argv.empty()) {
      std::vector<char*> argv;
      for (std::string& argument : last_will_.argv) argv.push_back(argument.data());
      argv.push_back(nullptr);
      sigprocmask(SIG_SETMASK, &signals_.mask, nullptr);
      execv(argv[0], argv.data());
    }
    _exit(0);
  }

  WardenChannel channel_;
  UniqueFd child_signals_;
  SignalState signals_;
  Duration orphan_grace_;
  WorkerGroup group_;
  LastWillRequest last_will_;
  Time fence_ = kNever;          // the tree is killed then
  std::map<int, uint32_t> ids_;  // started processes by pid
  bool has_children_ = false;    // started, orphaned to us, or a spawn that failed: not yet reaped
  bool killing_ = false;
  bool agent_is_gone_ = false;
};

// Closes everything but standard input and `keep`: a pipe of the terminal that the warden holds
// would keep `muster | tee` from ending.
void CloseAllBut(std::vector<int> keep) {
  std::sort(keep.begin(), keep.end());
  unsigned first = 1;
  for (int fd : keep) {
    if (static_cast<unsigned>(fd) > first) syscall(SYS_close_range, first, fd - 1, 0);
    first = static_cast<unsigned>(fd) + 1;
  }
  syscall(SYS_close_range, first, ~0U, 0);
  // Descriptors 0 to 2 must not be handed out to something that a worker or a library writes to.
  int fd = 0;
  do {
    fd = open("/dev/null", O_RDWR);
  } while (fd >= 0 && fd < 2);
  if (fd > 2) close(fd);
}

// All signals are blocked; `mask` and `descriptors` are what was in force before.
[[noreturn]] void BecomeWarden(UniqueFd socket, const WardenOptions& options, const sigset_t& mask,
                               const rlimit& descriptors) {
  setsid();
  // One that somebody stopped wakes up when the agent dies.
  prctl(PR_SET_PDEATHSIG, SIGCONT);
  prctl(PR_SET_NAME, "muster-warden");
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  SignalState signals = SignalState::TakeAndIgnore(
      {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2, SIGTSTP, SIGTTIN, SIGTTOU});
  signals.mask = mask;
  signals.descriptors = descriptors;
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  sigprocmask(SIG_SETMASK, &child, nullptr);
  std::vector<int> keep = options.keep_fds;
  keep.push_back(socket.get());
  CloseAllBut(std::move(keep));
  for (int fd : options.keep_fds) fcntl(fd, F_SETFD, FD_CLOEXEC);
  UniqueFd child_signals(signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK));
  Warden(std::move(socket), std::move(child_signals), std::move(signals), options.orphan_grace,
         WorkerGroup::Make(OwnGroupFolder()))
      .Run();
}

}  // namespace

absl::StatusOr<WardenProcess> ForkWarden(const WardenOptions& options) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return absl::ErrnoToStatus(errno, "cannot make the socket pair to the warden");
  }
  UniqueFd ours(ends[0]);
  UniqueFd theirs(ends[1]);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  // Ignored, as some supervisors leave it, the kernel would reap children and forget how they
  // ended.
  signal(SIGCHLD, SIG_DFL);
  // A signal to the whole process group must not find the warden before it ignores it.
  sigset_t all;
  sigset_t mask;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &mask);
  const rlimit descriptors = RaiseDescriptorLimit();
  const int pid = fork();
  if (pid == 0) {
    ours.reset();
    BecomeWarden(std::move(theirs), options, mask, descriptors);
  }
  const int error = errno;
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  if (pid < 0) {
    return absl::Status(absl::ErrnoToStatusCode(error),
                        absl::StrCat("cannot fork the warden: ", strerror(error),
                                     ": raise the limit of processes (ulimit -u), or end some"));
  }
  return WardenProcess{pid, std::move(ours)};
}

}  // namespace muster
