#ifndef MUSTER_AGENT_PROCESS_TREE_H_
#define MUSTER_AGENT_PROCESS_TREE_H_

#include <string>
#include <vector>

#include "base/time.h"

namespace muster {

// Pids of all living descendants of the calling process, children before grandchildren. With
// PR_SET_CHILD_SUBREAPER set, that is everything it started, also what called setsid or was
// double-forked. A snapshot: the tree may change meanwhile.
std::vector<int> Descendants();

// Sends `signal` to each descendant. A pid that stopped being a descendant in between is left
// alone. After a signal that asks a process to end, a SIGCONT follows, so that a stopped process
// sees it. SIGSTOP is repeated while processes turn up that were not there before.
void SignalDescendants(int signal);

// Sends `signal` (SIGKILL, outside of tests) to each descendant and reaps what becomes a child of
// the calling process, until there is none or `patience` is over. Returns who is left then: what
// hangs in the kernel.
std::vector<int> EndDescendants(int signal, Duration patience);

// "pid 812 (trainer) in rpc_wait_bit_killable": name, and where it waits in the kernel as far as
// that may be known.
std::string ProcessText(int pid);

}  // namespace muster

#endif  // MUSTER_AGENT_PROCESS_TREE_H_
