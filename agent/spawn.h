#ifndef MUSTER_AGENT_SPAWN_H_
#define MUSTER_AGENT_SPAWN_H_

#include <sys/resource.h>

#include <csignal>
#include <cstdint>
#include <string>
#include <vector>

#include "base/unique_fd.h"

namespace muster {

// What a worker starts from, taken before the warden changes its own: signal mask, which of the
// signals that the warden ignores were ignored already (nohup), and the limit of descriptors.
struct SignalState {
  sigset_t mask;
  std::vector<int> ignored_by_warden;  // to be set back to their default in a worker
  rlimit descriptors;                  // RLIMIT_NOFILE
  int group = -1;                      // folder of the cgroup to start in; -1: the caller's own

  // Ignores `signals` in the calling process. The rest is the caller's to fill in.
  static SignalState TakeAndIgnore(const std::vector<int>& signals);
};

struct SpawnResult {
  int pid = 0;          // 0: no process could be made
  int error = 0;        // errno
  bool forked = false;  // the process existed and could not execute the program
};

// Raises the limit of open descriptors to what the kernel allows (a node of many workers needs more
// than a shell's usual 1024) and returns the one before, which is for the workers: select() is
// unsafe with more.
rlimit RaiseDescriptorLimit();

// Starts argv[0] in a session of its own that dies with the calling thread (PR_SET_PDEATHSIG), with
// `env` replacing variables of our environment, and `fds` as its descriptors 3 - fds.size() ... 2.
// It runs on `cpus` only, or where we do when there are none. Only for a process with one thread.
SpawnResult SpawnWorker(const std::vector<std::string>& argv, const std::vector<std::string>& env,
                        const std::vector<UniqueFd>& fds, const std::vector<uint32_t>& cpus,
                        const SignalState& signals);

}  // namespace muster

#endif  // MUSTER_AGENT_SPAWN_H_
