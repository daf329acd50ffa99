#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/worker_sdk/nets.h"
#include "tests/worker_sdk/ranks.h"

namespace muster {
namespace {

using testing::HasSubstr;

// Other numbers on each rank, whose sum depends on the order in which they are added.
at::Tensor NumbersOf(int rank, int64_t count, at::ScalarType type) {
  at::manual_seed(static_cast<uint64_t>(rank) + 1);
  return (at::randn({count}) * 100).to(type);
}

TEST(SharedMemory, NumbersAreAddedInTheOrderOfTheRanksWhereverTheyAre) {
  for (const int ranks : {2, 3}) {
    EXPECT_TRUE(OnRanks(ranks, [ranks](int rank) {
      const World world = Join();
      EXPECT_TRUE(world.shares_memory());
      for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16, at::kLong}) {
        // Smaller than what is exchanged, of several parts, and in between.
        for (const int64_t count : {1, 1023, 40'000, 262'144, 600'001}) {
          const at::Tensor sum = NumbersOf(rank, count, type);
          world.all_reduce(sum);
          at::Tensor expected = NumbersOf(0, count, type);
          for (int other = 1; other < ranks; ++other) {
            expected = expected + NumbersOf(other, count, type);
          }
          EXPECT_TRUE(sum.equal(expected)) << count << " " << type;
        }
      }
      return 0;
    }));
  }
}

TEST(SharedMemory, ManySumsThatWereStartedTogetherAreKeptApart) {
  EXPECT_TRUE(OnRanks(3, [](int rank) {
    const World world = Join();
    std::vector<at::Tensor> tensors;
    std::vector<Pending> sums;
    for (int64_t i = 0; i < 100; ++i) {
      tensors.push_back(at::full({1 + i * 5000}, (rank + 1) * i, at::kLong));
      sums.push_back(world.all_reduce_async(tensors.back()));
    }
    for (int64_t i = 99; i >= 0; --i) {
      sums[static_cast<size_t>(i)].wait();
      EXPECT_TRUE(tensors[static_cast<size_t>(i)].eq(6 * i).all().item<bool>()) << i;
    }
    return 0;
  }));
}

TEST(SharedMemory, CopiesArriveWhole) {
  EXPECT_TRUE(OnRanks(3, [](int rank) {
    const World world = Join();
    // Of one part, filling one, and of several.
    for (const int64_t count : {1, 262'128, 262'129, 700'001}) {
      const auto of = [&](int64_t other) { return at::arange(count, at::kInt) + other; };
      for (const int root : {0, 2}) {
        const at::Tensor copy = of(rank);
        world.broadcast(copy, root);
        EXPECT_TRUE(copy.equal(of(root))) << count;
      }
      const at::Tensor all = world.all_gather(of(rank));
      for (int64_t other = 0; other < 3; ++other) EXPECT_TRUE(all[other].equal(of(other))) << count;
    }
    return 0;
  }));
}

TEST(SharedMemory, CollectivesThatDifferAreAMismatchOnEveryRank) {
  EXPECT_TRUE(OnRanks(2, [](int rank) {
    const World world = Join();
    const auto what = [&](const auto& collective) {
      try {
        collective();
      } catch (const Mismatch& error) {
        return std::string(error.what());
      }
      return std::string();
    };
    const std::string start = "the ranks are in different collectives: rank 0 in ";
    EXPECT_EQ(
        what([&] { world.all_reduce(at::ones({3 + 400'000 * rank})); }),
        start + "all_reduce of 12 bytes of Float, rank 1 in all_reduce of 1600012 bytes of Float");
    EXPECT_EQ(what([&] { world.all_reduce(at::ones({3}, rank == 0 ? at::kFloat : at::kInt)); }),
              start + "all_reduce of 12 bytes of Float, rank 1 in all_reduce of 12 bytes of Int");
    EXPECT_EQ(
        what([&] { world.broadcast(at::ones({3}), rank); }),
        start + "broadcast from rank 0 of 12 bytes, rank 1 in broadcast from rank 1 of 12 bytes");
    EXPECT_EQ(what([&] {
                if (rank == 0) {
                  world.broadcast(at::ones({3}), 1);
                } else {
                  world.all_gather(at::ones({3}));
                }
              }),
              start + "broadcast from rank 1 of 12 bytes, rank 1 in all_gather of 12 bytes");
    const at::Tensor alike = at::ones({3});
    world.all_reduce(alike);
    EXPECT_EQ(alike[2].item<float>(), 2) << "the group is still of use";
    return 0;
  }));
}

TEST(SharedMemory, IsUsedOnlyWhereEveryRankHasIt) {
  const auto shares = [](const InitOptions& options) {
    const World world = Join(options);
    const at::Tensor sum = at::ones({5});
    world.all_reduce(sum);
    EXPECT_EQ(sum[4].item<float>(), static_cast<float>(world.size()));
    return world.shares_memory();
  };
  EXPECT_TRUE(OnRanks(3, [&](int rank) {
    EXPECT_FALSE(shares(InitOptions().shared_memory(rank != 0)));
    return 0;
  }));
  EXPECT_TRUE(OnRanks(3, [&](int rank) {
    EXPECT_FALSE(shares(InitOptions().shared_memory(rank != 2)));
    return 0;
  }));
  const auto by_default = [&](bool expected, const Variables& variables) {
    return OnRanks(
        2,
        [&](int) {
          EXPECT_EQ(shares({}), expected);
          return 0;
        },
        variables);
  };
  EXPECT_TRUE(by_default(true, {}));
  EXPECT_TRUE(by_default(false, {{"MUSTER_SHARED_MEMORY", "0"}}));
  EXPECT_TRUE(by_default(false, {{"GROUP_WORLD_SIZE", "2"}})) << "two nodes";
}

TEST(SharedMemory, AGroupOfSomeRanksHasItsOwn) {
  EXPECT_TRUE(OnRanks(4, [](int rank) {
    const World world = Join();
    const World half = world.subgroup(rank % 2 == 0 ? std::vector{0, 2} : std::vector{3, 1});
    EXPECT_TRUE(half.shares_memory());
    const at::Tensor of_half = at::full({70'000}, rank), of_all = at::full({70'000}, rank);
    const Pending first = half.all_reduce_async(of_half);
    const Pending second = world.all_reduce_async(of_all);
    second.wait();
    first.wait();
    EXPECT_TRUE(of_half.eq(rank % 2 == 0 ? 2 : 4).all().item<bool>());
    EXPECT_TRUE(of_all.eq(6).all().item<bool>());
    return 0;
  }));
}

TEST(SharedMemory, AValueOfItsVariableThatIsNoneIsATypedError) {
  EXPECT_TRUE(OnRanks(
      2,
      [](int) {
        try {
          Join();
        } catch (const EnvironmentError& error) {
          EXPECT_THAT(error.what(), HasSubstr("MUSTER_SHARED_MEMORY='yes' in the environment is"));
          return 0;
        }
        return 1;
      },
      {{"MUSTER_SHARED_MEMORY", "yes"}}));
}

}  // namespace
}  // namespace muster
