#ifndef MUSTER_AGENT_PROCESS_TREE_H_
#define MUSTER_AGENT_PROCESS_TREE_H_

#include <vector>

namespace muster {

// Pids of all living descendants of the calling process, children before grandchildren. With
// PR_SET_CHILD_SUBREAPER set, that is everything it started, also what called setsid or was
// double-forked. A snapshot: the tree may change meanwhile.
std::vector<int> Descendants();

// Sends `signal` to each descendant. A pid that stopped being a descendant in between is left
// alone. After a signal that asks a process to end, a SIGCONT follows, so that a stopped process
// sees it.
void SignalDescendants(int signal);

}  // namespace muster

#endif  // MUSTER_AGENT_PROCESS_TREE_H_
