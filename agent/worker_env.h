#ifndef MUSTER_AGENT_WORKER_ENV_H_
#define MUSTER_AGENT_WORKER_ENV_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/env.h"
#include "rendezvous/messages.h"

namespace muster {

// What one worker is told of itself besides its node's assignment.
struct WorkerIdentity {
  int local_rank = 0;
  int slots = 1;  // workers on this node
  std::string role = "default";
  std::string job_id = "none";
  std::string node_id;
  int max_restarts = 0;
  std::string local_addr;   // this node's address as its peers reach it; empty: not known, the
                            // variable is left out
  std::string socket_path;  // of its worker socket; empty: there is none
  std::string error_file;   // empty when logs go to /dev/null: the variable is then set and empty,
                            // as torchrun does
  std::vector<int> signals_to_handle;  // empty: the variable is left as inherited
  bool virtual_local_rank = false;
  std::map<std::string, std::string> extra_env;  // wins over everything else
};

// The variables to set or replace in a copy of the agent's environment, each "NAME=value", each
// name once, sorted: torchrun's list and MUSTER_GENERATION, MUSTER_LOCAL_ADDR,
// MUSTER_NODE_ID, MUSTER_SOCKET. Pure.
//
//  - TORCH_NCCL_ASYNC_ERROR_HANDLING: inherited, else 1. OMP_NUM_THREADS: inherited, else 1 where
//    slots > 1.
//  - Virtual local rank: LOCAL_RANK is 0, and CUDA_VISIBLE_DEVICES is the local rank's entry of the
//    inherited list, or the local rank itself where nothing is inherited. An inherited empty list
//    means "no GPU" and stays.
//
// InvalidArgument: virtual local rank, and the inherited list is too short for this local rank.
absl::StatusOr<std::vector<std::string>> WorkerEnvironment(const WorkerIdentity& worker,
                                                           const Assignment& assignment,
                                                           const EnvMap& inherited);

}  // namespace muster

#endif  // MUSTER_AGENT_WORKER_ENV_H_
