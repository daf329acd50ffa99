#ifndef MUSTER_AGENT_WARDEN_H_
#define MUSTER_AGENT_WARDEN_H_

#include <vector>

#include "absl/status/statusor.h"
#include "base/time.h"
#include "base/unique_fd.h"

namespace muster {

// The warden is a process of one thread that starts, signals and reaps the workers on the agent's
// request, and cleans up when the agent vanishes: TERM to the whole tree, the orphan grace, KILL
// until nothing is left, then the last will. It decides nothing else. Why a process of its own:
// docs/decisions/002-warden.md.
struct WardenOptions {
  Duration orphan_grace;      // TERM to KILL when the agent is gone
  std::vector<int> keep_fds;  // stay open in the warden for its life (the lock of the node's name);
                              // workers do not get them
};

struct WardenProcess {
  int pid = 0;
  UniqueFd socket;  // for a WardenChannel; closing it is the agent's death to the warden
};

// Forks the warden. Only before the process has a second thread; the caller becomes a child
// subreaper, so that it inherits what the warden leaves should it die, no longer ignores
// SIGCHLD, and may open as many descriptors as the kernel allows (workers get the limit of before).
// Errors: the operation and errno text (no process or descriptor to be had).
absl::StatusOr<WardenProcess> ForkWarden(const WardenOptions& options);

}  // namespace muster

#endif  // MUSTER_AGENT_WARDEN_H_
