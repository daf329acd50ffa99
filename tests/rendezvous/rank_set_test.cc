#include "rendezvous/rank_set.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

namespace muster {
namespace {

using Ranks = std::vector<int>;

TEST(RankSet, TheFirstThatAreMissing) {
  RankSet ranks;
  EXPECT_EQ(ranks.FirstMissing(2, 3), (Ranks{0, 1}));
  for (const int rank : {0, 1, 3, 7}) ranks.Add(rank);
  EXPECT_EQ(ranks.FirstMissing(8, 3), (Ranks{2, 4, 5}));
  EXPECT_EQ(ranks.FirstMissing(4, 3), (Ranks{2}));
  EXPECT_EQ(ranks.FirstMissing(2, 3), Ranks());
}

TEST(RankSet, IsASet) {
  std::mt19937 random(7);
  RankSet ranks;
  std::set<int> expected;
  for (int step = 0; step < 20'000; ++step) {
    const int rank = static_cast<int>(random() % 40);
    if (random() % 2 == 0) {
      ranks.Add(rank);
      expected.insert(rank);
    } else {
      ranks.Remove(rank);
      expected.erase(rank);
    }
    ASSERT_EQ(ranks.size(), expected.size());
    ASSERT_EQ(ranks.First(100), Ranks(expected.begin(), expected.end()));
    Ranks missing;
    for (int i = 0; i < 40; ++i) {
      ASSERT_EQ(ranks.Contains(i), expected.count(i) == 1);
      if (expected.count(i) == 0) missing.push_back(i);
    }
    ASSERT_EQ(ranks.FirstMissing(40, 100), missing);
  }
}

}  // namespace
}  // namespace muster
