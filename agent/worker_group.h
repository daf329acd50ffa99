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

  // Of the folder, for CLONE_INTO_CGROUP; -1: none.
  int fd() const { return fd_.get(); }

  void Kill() const;
  // Once it is empty; otherwise it stays.
  void Remove();

 private:
  std::string folder_;
  UniqueFd fd_;
};

// The folder of the calling process's own cgroup v2 where groups can be made that change nothing
// but who is ended together; "" when there is none.
std::string OwnGroupFolder();

}  // namespace muster

#endif  // MUSTER_AGENT_WORKER_GROUP_H_
