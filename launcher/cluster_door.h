#ifndef MUSTER_LAUNCHER_CLUSTER_DOOR_H_
#define MUSTER_LAUNCHER_CLUSTER_DOOR_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "agent/agent_loop.h"
#include "launcher/options.h"

namespace muster {

// What only a program with gRPC can do. Loading gRPC takes longer than a small job, so that there
// are two programs from the same sources: `muster`, which has none of this, and `muster-cluster`,
// which `muster` becomes (execve) for jobs of several nodes.
class ClusterDoor {
 public:
  virtual ~ClusterDoor() = default;

  // Whether the files of a node's credentials can be used; FailedPrecondition, one line.
  virtual absl::Status CheckFiles(const AgentOptions& options) = 0;

  virtual RendezvousFactory factory() = 0;

  // `muster-cluster status ...` and the like (launcher/control_command.h). Returns the exit code.
  virtual int Control(const CommandSpec& command, const Options& options) = 0;

  // `muster-cluster last-will ...`: the warden's one-shot. Returns the exit code.
  virtual int SendLastWill(const std::vector<std::string>& words) = 0;
};

// Null in `muster`. Chosen at link time: //launcher:no_cluster or //launcher:grpc_cluster.
ClusterDoor* FindClusterDoor();

}  // namespace muster

#endif  // MUSTER_LAUNCHER_CLUSTER_DOOR_H_
