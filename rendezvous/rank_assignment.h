#ifndef MUSTER_RENDEZVOUS_RANK_ASSIGNMENT_H_
#define MUSTER_RENDEZVOUS_RANK_ASSIGNMENT_H_

#include <string>
#include <string_view>
#include <vector>

namespace muster {

// One member-to-be. Ids are unique within one call.
struct RankRequest {
  std::string node_id;
  std::string topology_key;
  std::string role;
  int slots = 1;
  int fixed_rank = -1;  // --node-rank in static mode; all members have one or none has
  int last_rank =
      -1;  // group rank in the generation before, -1 for a newcomer; no two members share one
};

struct RankGrant {
  int group_rank = 0;
  int rank_base = 0;
  int role_rank_base = 0;
  int role_world_size = 0;
};

struct RankTable {
  std::vector<RankGrant> grants;  // in the order of the requests
  int world_size = 0;
};

// Group ranks 0…n−1 without gaps. Fixed ranks are taken as they are (they must be a permutation of
// 0…n−1). Otherwise a member keeps its last rank if that is below n; members whose rank is gone
// fill the gaps in the order of their old ranks, then newcomers in the natural order of topology
// key and node id. Global and role ranks count slots in group-rank order.
RankTable AssignRanks(const std::vector<RankRequest>& requests);

// Numbers inside text compare as numbers: node2 < node10 < nodes. A strict total order.
bool NaturalLess(std::string_view a, std::string_view b);

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_RANK_ASSIGNMENT_H_
