#include "agent/spawn.h"

#include <linux/sched.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

namespace muster {
namespace {

std::string_view NameOf(std::string_view variable) {
  return variable.substr(0, variable.find('='));
}

std::vector<char*> Environment(const std::vector<std::string>& overrides) {
  std::vector<char*> result;
  for (char** inherited = environ; *inherited != nullptr; ++inherited) {
    bool replaced = false;
    for (const std::string& variable : overrides) {
      replaced = replaced || NameOf(variable) == NameOf(*inherited);
    }
    if (!replaced) result.push_back(*inherited);
  }
  for (const std::string& variable : overrides)
    result.push_back(const_cast<char*>(variable.c_str()));
  result.push_back(nullptr);
  return result;
}

// As sched_setaffinity(2) takes it; empty for no CPUs.
std::vector<unsigned long> CpuMask(const std::vector<uint32_t>& cpus) {
  constexpr uint32_t kBits = 8 * sizeof(unsigned long);
  std::vector<unsigned long> mask;
  for (uint32_t cpu : cpus) {
    if (mask.size() <= cpu / kBits) mask.resize(cpu / kBits + 1);
    mask[cpu / kBits] |= 1ul << cpu % kBits;
  }
  return mask;
}

struct Child {
  char* const* argv;
  char* const* env;
  const UniqueFd* fds;
  size_t fd_count;
  const std::vector<unsigned long>* cpu_mask;
  const SignalState* signals;
  int parent;
};

// Runs in the vforked child: only system calls, nothing that the parent's memory would show
// afterwards. Returns errno.
int Become(const Child& child) {
  if (setsid() < 0) return errno;
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return errno;
  // The warden may have died before the line above.
  if (getppid() != child.parent) return ESRCH;
  for (size_t i = 0; i < child.fd_count; ++i) {
    if (dup2(child.fds[i].get(), static_cast<int>(3 - child.fd_count + i)) < 0) return errno;
  }
  setrlimit(RLIMIT_NOFILE, &child.signals->descriptors);
  const std::vector<unsigned long>& mask = *child.cpu_mask;
  if (!mask.empty() && sched_setaffinity(0, mask.size() * sizeof(mask[0]),
                                         reinterpret_cast<const cpu_set_t*>(mask.data())) != 0) {
    return errno;
  }
  for (int signal : child.signals->ignored_by_warden) {
    struct sigaction action {};
    action.sa_handler = SIG_DFL;
    sigaction(signal, &action, nullptr);
  }
  sigprocmask(SIG_SETMASK, &child.signals->mask, nullptr);
  execve(child.argv[0], child.argv, child.env);
  return errno;
}

// vfork and not fork: the address space is not copied, and the child's errno comes back through
// `error` without a pipe.
[[gnu::noinline]] int VforkAndBecome(const Child& child, volatile int* error) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  const int pid = vfork();
#pragma GCC diagnostic pop
  if (pid == 0) {
    *error = Become(child);
    _exit(127);
  }
  return pid;
}

// The same with the child in the cgroup from its first instruction. clone3 directly, because glibc
// has no vfork with flags: the child runs on this stack frame, as after vfork, and never returns
// from it. -1 where the kernel does not do it; the caller goes without.
[[gnu::noinline]] int CloneAndBecome(const Child& child, volatile int* error) {
#if defined(__x86_64__)
  clone_args args{};
  args.flags = CLONE_VM | CLONE_VFORK | CLONE_INTO_CGROUP;
  args.exit_signal = SIGCHLD;
  args.cgroup = static_cast<uint64_t>(child.signals->group);
  int64_t pid = SYS_clone3;
  asm volatile("syscall" : "+a"(pid) : "D"(&args), "S"(sizeof(args)) : "rcx", "r11", "memory");
  if (pid == 0) {
    *error = Become(child);
    _exit(127);
  }
  return pid < 0 ? -1 : static_cast<int>(pid);
#else
  return -1;
#endif
}

}  // namespace

SignalState SignalState::TakeAndIgnore(const std::vector<int>& signals) {
  SignalState state{};
  for (int signal : signals) {
    struct sigaction ignore {};
    struct sigaction before {};
    ignore.sa_handler = SIG_IGN;
    sigaction(signal, &ignore, &before);
    if (before.sa_handler != SIG_IGN) state.ignored_by_warden.push_back(signal);
  }
  return state;
}

rlimit RaiseDescriptorLimit() {
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit raised{before.rlim_max, before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &raised);
  return before;
}

SpawnResult SpawnWorker(const std::vector<std::string>& argv, const std::vector<std::string>& env,
                        const std::vector<UniqueFd>& fds, const std::vector<uint32_t>& cpus,
                        const SignalState& signals) {
  std::vector<char*> arguments;
  for (const std::string& argument : argv) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const std::vector<char*> environment = Environment(env);
  const std::vector<unsigned long> cpu_mask = CpuMask(cpus);
  const Child child{arguments.data(), environment.data(), fds.data(), fds.size(),
                    &cpu_mask,        &signals,           getpid()};
  volatile int error = 0;
  int pid = signals.group < 0 ? -1 : CloneAndBecome(child, &error);
  if (pid < 0) pid = VforkAndBecome(child, &error);
  if (pid < 0) return {0, errno, false};
  // A child that could not become the program has ended; it is reaped with the others and answered
  // here.
  if (error != 0) return {pid, error, true};
  return {pid, 0, true};
}

}  // namespace muster
