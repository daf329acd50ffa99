#include "rendezvous/rank_assignment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace muster {
namespace {

std::vector<int> GroupRanks(const std::vector<RankRequest>& requests) {
  std::vector<int> ranks;
  for (const RankGrant& grant : AssignRanks(requests).grants) ranks.push_back(grant.group_rank);
  return ranks;
}

RankRequest Node(const std::string& id, int last_rank = -1, int slots = 1) {
  RankRequest request;
  request.node_id = id;
  request.last_rank = last_rank;
  request.slots = slots;
  return request;
}

TEST(RankAssignment, NewcomersComeInNaturalOrder) {
  EXPECT_EQ(GroupRanks({Node("node10"), Node("node2"), Node("node1")}),
            (std::vector<int>{2, 1, 0}));
}

TEST(RankAssignment, TopologyKeyComesBeforeNodeId) {
  std::vector<RankRequest> requests = {Node("a"), Node("b"), Node("c")};
  requests[0].topology_key = "rack10";
  requests[1].topology_key = "rack9";
  requests[2].topology_key = "rack10";
  EXPECT_EQ(GroupRanks(requests), (std::vector<int>{1, 0, 2}));
}

TEST(RankAssignment, MembersKeepTheirRankAndNewcomersFillTheGaps) {
  EXPECT_EQ(GroupRanks({Node("z", 2), Node("a"), Node("y", 0)}), (std::vector<int>{2, 1, 0}));
}

TEST(RankAssignment, AMemberWhoseRankIsGoneFillsAGapBeforeNewcomers) {
  EXPECT_EQ(GroupRanks({Node("a"), Node("m", 3), Node("n", 0)}), (std::vector<int>{2, 1, 0}));
}

TEST(RankAssignment, FixedRanksAreTakenAsTheyAre) {
  std::vector<RankRequest> requests = {Node("a", 0), Node("b", 1)};
  requests[0].fixed_rank = 1;
  requests[1].fixed_rank = 0;
  EXPECT_EQ(GroupRanks(requests), (std::vector<int>{1, 0}));
}

TEST(RankAssignment, GlobalAndRoleRanksCountSlots) {
  std::vector<RankRequest> requests = {Node("a", -1, 2), Node("b", -1, 3), Node("c", -1, 1)};
  requests[0].role = requests[2].role = "trainer";
  requests[1].role = "reader";
  const RankTable table = AssignRanks(requests);
  EXPECT_EQ(table.world_size, 6);
  EXPECT_EQ(table.grants[1].rank_base, 2);
  EXPECT_EQ(table.grants[1].role_rank_base, 0);
  EXPECT_EQ(table.grants[1].role_world_size, 3);
  EXPECT_EQ(table.grants[2].rank_base, 5);
  EXPECT_EQ(table.grants[2].role_rank_base, 2);
  EXPECT_EQ(table.grants[2].role_world_size, 3);
}

// Whatever comes and goes: ranks have no gaps, the order of the requests does not matter, and
// whoever can keep its rank does.
TEST(RankAssignment, PropertiesHoldForRandomMembers) {
  std::mt19937 random(7);
  for (int repetition = 0; repetition < 2000; ++repetition) {
    std::vector<RankRequest> requests;
    std::set<int> taken;
    const int count = 1 + static_cast<int>(random() % 12);
    for (int i = 0; i < count; ++i) {
      const int last = static_cast<int>(random() % 16) - 4;
      const int last_rank = last >= 0 && taken.insert(last).second ? last : -1;
      requests.push_back(Node("node" + std::to_string(i), last_rank, 1 + random() % 8));
      requests.back().role = random() % 2 == 0 ? "x" : "y";
    }
    const RankTable table = AssignRanks(requests);
    std::map<int, size_t> by_rank;
    for (size_t i = 0; i < requests.size(); ++i) {
      by_rank[table.grants[i].group_rank] = i;
      if (requests[i].last_rank >= 0 && requests[i].last_rank < count) {
        EXPECT_EQ(table.grants[i].group_rank, requests[i].last_rank);
      }
    }
    ASSERT_EQ(by_rank.size(), requests.size());
    int next_rank = 0;
    std::map<std::string, int> next_role_rank;
    for (const auto& [rank, i] : by_rank) {
      EXPECT_LT(rank, count);
      EXPECT_EQ(table.grants[i].rank_base, next_rank);
      EXPECT_EQ(table.grants[i].role_rank_base, next_role_rank[requests[i].role]);
      next_rank += requests[i].slots;
      next_role_rank[requests[i].role] += requests[i].slots;
    }
    EXPECT_EQ(table.world_size, next_rank);

    std::vector<RankRequest> shuffled = requests;
    std::shuffle(shuffled.begin(), shuffled.end(), random);
    const RankTable again = AssignRanks(shuffled);
    for (size_t i = 0; i < shuffled.size(); ++i) {
      EXPECT_EQ(requests[by_rank[again.grants[i].group_rank]].node_id, shuffled[i].node_id);
    }
    if (HasFailure()) return;
  }
}

TEST(NaturalLess, ComparesNumbersAsNumbers) {
  const std::vector<std::string> ordered = {"",
                                            "2",
                                            "10",
                                            "a",
                                            "node",
                                            "node1",
                                            "node02",
                                            "node2",
                                            "node2#1",
                                            "node10",
                                            "node18446744073709551616",
                                            "node18446744073709551617",
                                            "nodes"};
  for (size_t i = 0; i < ordered.size(); ++i) {
    for (size_t j = 0; j < ordered.size(); ++j) {
      EXPECT_EQ(NaturalLess(ordered[i], ordered[j]), i < j) << ordered[i] << " and " << ordered[j];
    }
  }
}

}  // namespace
}  // namespace muster
