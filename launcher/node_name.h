#ifndef MUSTER_LAUNCHER_NODE_NAME_H_
#define MUSTER_LAUNCHER_NODE_NAME_H_

#include <string>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace muster {

// A node's name that no other agent on this host has in the same job.
struct NodeName {
  std::string name;
  // The name is ours while this descriptor, or a copy that a fork made, is open: the warden keeps
  // one, so that a successor of a killed agent gets the name only when the old workers are gone.
  UniqueFd lock;
};

// The first of "base", "base#1", "base#2", ... that is free for the job. The locks are ranges of
// one file, "node-names" in `folder`, which is made when it is missing (mode 0700) and must belong
// to this user alone. Unavailable, in one line with the path: the file cannot be used, or all
// names are taken.
absl::StatusOr<NodeName> ClaimNodeName(const std::string& folder, const std::string& job_id,
                                       const std::string& base);

// Where all agents of this user on this host find each other: /tmp/muster-<uid>.
std::string NodeNameFolder();

}  // namespace muster

#endif  // MUSTER_LAUNCHER_NODE_NAME_H_
