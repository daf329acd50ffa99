#ifndef MUSTER_RENDEZVOUS_ASSIGNMENT_H_
#define MUSTER_RENDEZVOUS_ASSIGNMENT_H_

#include <cstdint>
#include <string>
#include <vector>

namespace muster {

// The place of one node in one generation, complete: a worker's environment follows from it and the
// local rank.
struct Assignment {
  uint64_t instance = 0;  // of the job: a finished job id that is used again gets a new one
  int64_t generation = 0;
  int group_rank = 0;  // rank of the node among nodes
  int group_world_size = 1;
  int rank_base = 0;  // global rank of the node's local rank 0
  int world_size = 1;
  int role_rank_base = 0;
  int role_world_size = 1;
  std::string master_addr;  // of group rank 0, as the others reach it; without brackets for IPv6
  int master_port = 0;
  int restart_count = 0;  // failures charged so far, equal on all nodes

  // Node ids by group rank, so that a master without memory can tell a member that comes back as a
  // new process from a newcomer. Left out in generations of more than kMembersListedMax nodes.
  static constexpr int kMembersListedMax = 256;
  std::vector<std::string> members;

  bool operator==(const Assignment&) const = default;
};

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_ASSIGNMENT_H_
