#ifndef MUSTER_AGENT_WORKER_GROUP_H_
#define MUSTER_AGENT_WORKER_GROUP_H_

#include <string>

#include "base/unique_fd.h"

namespace muster {

// A cgroup v2 for the workers of one warden, below the one that muster runs in: the kernel ends
// everything in it at once, whatever it forks meanwhile. An extra on top of the process tree: where
// no group can be made (no cgroup v2, no permission, an old kernel), there is none and everything
// else works as ever. Belongs to the warden, which holds a lock on it for its life.
class WorkerGroup {
 public:
  // None.
  WorkerGroup() = default;

  // Makes `parent`/muster-<pid of the caller>, or none. Groups there whose warden is dead are ended
  // and removed first: what stayed behind when agent and warden were killed in one instant.
  static WorkerGroup Make(const std::string& parent);

  // The group of a warden that has died.
  static WorkerGroup Of(const std::string& parent, int warden_pid);

  bool exists() const { return fd_.valid(); }

  // The folder for the next worker, for CLONE_INTO_CGROUP; -1: none. It is one within the group,
  // and after Kill() a new one: where a group was killed once, some kernels (6.18) kill whoever is
  // cloned into it later.
  int ForNextWorker();

  void Kill();
  // Once it is empty; otherwise it stays.
  void Remove();

 private:
  std::string folder_;
  UniqueFd fd_;  // of the folder, with the lock
  UniqueFd inner_;
  int inner_made_ = 0;
};

// The folder of the calling process's own cgroup v2 where groups can be made that change nothing
// but who is ended together; "" when there is none.
std::string OwnGroupFolder();

}  // namespace muster

#endif  // MUSTER_AGENT_WORKER_GROUP_H_
