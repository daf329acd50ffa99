#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <muster/sampler.h>
#include <torch/data/dataloader.h>
#include <torch/data/datasets/base.h>

#include <fstream>
#include <set>
#include <sstream>

#include "tests/worker_sdk/ranks.h"

namespace muster {
namespace {

using testing::ElementsAre;
using Indices = std::vector<size_t>;

Indices Drain(DistributedSampler& sampler, size_t batch) {
  Indices all;
  sampler.reset();
  while (const auto some = sampler.next(batch)) all.insert(all.end(), some->begin(), some->end());
  return all;
}

int CompareWithGolden() {
  std::ifstream golden("tests/worker_sdk/golden/sampler.txt");
  EXPECT_TRUE(golden) << "run from the root of the tree";
  int cases = 0;
  for (std::string line; std::getline(golden, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream numbers(line);
    size_t n = 0, length = 0, epoch = 0;
    int ranks = 0, rank = 0, shuffle = 0, drop_last = 0;
    uint64_t seed = 0;
    numbers >> n >> ranks >> rank >> seed >> epoch >> shuffle >> drop_last >> length;
    Indices expected;
    for (size_t index; numbers >> index;) expected.push_back(index);
    DistributedSampler sampler(
        n, rank, ranks,
        SamplerOptions().shuffle(shuffle != 0).seed(seed).drop_last(drop_last != 0));
    sampler.set_epoch(epoch);
    EXPECT_EQ(sampler.size(), length) << line;
    EXPECT_EQ(Drain(sampler, 3), expected) << line;
    EXPECT_EQ(sampler.indices(), expected) << line;
    ++cases;
  }
  return cases;
}

TEST(Sampler, EqualsPythonsIndexForIndex) {
  EXPECT_TRUE(OnRanks(1, [](int) {
    EXPECT_GT(CompareWithGolden(), 300);
    return 0;
  }));
}

struct Numbers : torch::data::datasets::Dataset<Numbers, int64_t> {
  int64_t get(size_t index) override { return static_cast<int64_t>(index); }
  std::optional<size_t> size() const override { return 10; }
};

template <class Loader>
Indices Visit(Loader& loader) {
  Indices seen;
  for (const auto& batch : *loader) seen.insert(seen.end(), batch.begin(), batch.end());
  return seen;
}

TEST(Sampler, SetEpochReachesTheCopyInADataLoader) {
  EXPECT_TRUE(OnRanks(1, [](int) {
    DistributedSampler sampler(10, 0, 2);
    const auto loader = torch::data::make_data_loader(Numbers(), sampler, 2);
    std::set<Indices> orders;
    for (size_t epoch = 0; epoch < 3; ++epoch) {
      sampler.set_epoch(epoch);
      const Indices seen = Visit(loader);
      DistributedSampler fresh(10, 0, 2);
      fresh.set_epoch(epoch);
      EXPECT_EQ(seen, fresh.indices());
      orders.insert(seen);
    }
    EXPECT_EQ(orders.size(), 3u);
    EXPECT_EQ(Visit(loader).size(), 5u) << "the same epoch again";
    return 0;
  }));
}

TEST(Sampler, GoesOnWhereItWasAlsoInAnotherProcess) {
  EXPECT_TRUE(OnRanks(1, [](int) {
    DistributedSampler sampler(11, 1, 2, SamplerOptions().seed(5));
    sampler.set_epoch(4);
    const Indices whole = sampler.indices();
    sampler.reset();
    sampler.next(4);
    sampler.consumed(2);  // the loader had read two more ahead
    DistributedSampler resumed(11, 1, 2, SamplerOptions().seed(5));
    resumed.restore(sampler.snapshot());
    EXPECT_EQ(resumed.epoch(), 4u);
    resumed.set_epoch(4);
    EXPECT_EQ(resumed.remaining(), 4u);
    EXPECT_EQ(Drain(resumed, 3), Indices(whole.begin() + 2, whole.end()));
    resumed.set_epoch(5);
    EXPECT_EQ(resumed.remaining(), 6u);
    return 0;
  }));
}

TEST(Sampler, AnEpochThatWasDoneWhenSavedStaysDone) {
  EXPECT_TRUE(OnRanks(1, [](int) {
    DistributedSampler sampler(8, 0, 2);
    sampler.consumed(4);
    DistributedSampler resumed(8, 0, 2);
    resumed.restore(sampler.snapshot());
    EXPECT_THAT(Drain(resumed, 3), ElementsAre());
    EXPECT_EQ(resumed.remaining(), 0u);
    resumed.set_epoch(1);
    EXPECT_EQ(Drain(resumed, 3).size(), 4u);
    return 0;
  }));
}

TEST(Sampler, WithAnotherNumberOfRanksTheRestIsSplitAnewAndNothingIsMissedOrSeenTwice) {
  EXPECT_TRUE(OnRanks(1, [](int) {
    std::multiset<size_t> seen;
    std::string snapshot;
    for (int rank = 0; rank < 4; ++rank) {
      DistributedSampler sampler(30, rank, 4);
      const Indices share = sampler.indices();
      sampler.consumed(3);
      seen.insert(share.begin(), share.begin() + 3);
      snapshot = sampler.snapshot();
    }
    for (int rank = 0; rank < 3; ++rank) {
      DistributedSampler sampler(30, rank, 3);
      sampler.restore(snapshot);
      const Indices rest = sampler.indices();
      EXPECT_EQ(rest.size(), 6u);
      seen.insert(rest.begin(), rest.end());
    }
    EXPECT_EQ(seen.size(), 30u);
    EXPECT_EQ(std::set<size_t>(seen.begin(), seen.end()).size(), 30u);
    return 0;
  }));
}

TEST(Sampler, AStateOfOtherDataIsRefused) {
  EXPECT_TRUE(OnRanks(1, [](int) {
    const std::string snapshot = DistributedSampler(8, 0, 2).snapshot();
    EXPECT_THROW(DistributedSampler(9, 0, 2).restore(snapshot), CheckpointError);
    EXPECT_THROW(DistributedSampler(8, 0, 2, SamplerOptions().seed(1)).restore(snapshot),
                 CheckpointError);
    EXPECT_THROW(DistributedSampler(8, 0, 2).restore("junk"), CheckpointError);
    EXPECT_THROW(DistributedSampler(0, 0, 2), Error);
    EXPECT_THROW(DistributedSampler(8, 2, 2), Error);
    return 0;
  }));
}

}  // namespace
}  // namespace muster
