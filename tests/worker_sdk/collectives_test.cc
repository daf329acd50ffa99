#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/worker_sdk/nets.h"
#include "tests/worker_sdk/ranks.h"

namespace muster {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr at::ScalarType kEveryType[] = {
    at::kFloat,  at::kDouble, at::kHalf,         at::kBFloat16,     at::kChar,
    at::kByte,   at::kShort,  at::kInt,          at::kLong,         at::kUInt16,
    at::kUInt32, at::kBool,   at::kComplexFloat, at::kComplexDouble};

// The number `value`, or whether it is odd.
at::Tensor Of(int64_t value, at::ScalarType type, at::IntArrayRef sizes = {2, 3}) {
  return at::full(sizes, type == at::kBool ? value % 2 : value, at::kLong).to(type);
}

// LibTorch itself compares few dtypes.
bool Same(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() &&
         a.to(at::kComplexDouble).equal(b.to(at::kComplexDouble));
}

// Over shared memory, and over sockets as between nodes.
bool OnRanksBothWays(int ranks, const std::function<int(int rank)>& body) {
  const auto with = [&](const char* memory) {
    return OnRanks(ranks, body, {{"MUSTER_SHARED_MEMORY", memory}});
  };
  return with("1") && with("0");
}

TEST(Collectives, EveryDtypeIsAddedUp) {
  EXPECT_TRUE(OnRanksBothWays(3, [](int rank) {
    const World world = Join();
    for (const at::ScalarType type : kEveryType) {
      const at::Tensor tensor = Of(rank + 1, type);
      world.all_reduce(tensor);
      EXPECT_TRUE(Same(tensor, Of(type == at::kBool ? 1 : 6, type))) << type;
      const bool complex = at::isComplexType(type);
      for (const Op op : {Op::min, Op::max}) {
        const at::Tensor extreme = Of(rank + 1, type);
        if (complex) {
          EXPECT_THROW(world.all_reduce(extreme, op), Error);
          continue;
        }
        world.all_reduce(extreme, op);
        const int64_t of_bools = op == Op::min ? 0 : 1;
        EXPECT_TRUE(Same(extreme, Of(type == at::kBool ? of_bools
                                     : op == Op::min   ? 1
                                                       : 3,
                                     type)))
            << type;
      }
      const at::Tensor mean = Of(rank + 1, type);
      if (type == at::kBool) {
        EXPECT_THROW(world.all_reduce(mean, Op::mean), Error);
      } else {
        world.all_reduce(mean, Op::mean);
        EXPECT_TRUE(Same(mean, Of(2, type))) << type;
      }
    }
    return 0;
  }));
}

TEST(Collectives, EveryDtypeIsCopiedExactly) {
  EXPECT_TRUE(OnRanksBothWays(3, [](int rank) {
    const World world = Join();
    for (const at::ScalarType type : kEveryType) {
      const at::Tensor from_two = Of(rank, type);
      world.broadcast(from_two, 2);
      EXPECT_TRUE(Same(from_two, Of(2, type))) << type;
      const at::Tensor all = world.all_gather(Of(rank, type));
      for (int64_t i = 0; i < 3; ++i) EXPECT_TRUE(Same(all[i], Of(i, type))) << type;
      const at::Tensor scalars = world.all_gather(Of(rank, type, {}));
      EXPECT_EQ(scalars.sizes(), at::IntArrayRef({3}));
      EXPECT_TRUE(Same(scalars[2], Of(2, type, {}))) << type;
    }
    const at::Tensor eight_bits = at::full({4}, rank + 0.5).to(at::kFloat8_e4m3fn);
    EXPECT_EQ(world.all_gather(eight_bits)[1][0].to(at::kFloat).item<float>(), 1.5f);
    EXPECT_THROW(world.all_reduce(eight_bits), Error);
    return 0;
  }));
}

TEST(Collectives, EveryLayoutComesBackInPlace) {
  EXPECT_TRUE(OnRanksBothWays(2, [](int rank) {
    const World world = Join();
    const at::Tensor whole = at::zeros({4, 6});
    const at::Tensor part = whole.slice(1, 0, 6, 2);
    part.fill_(rank + 1);
    world.all_reduce(part);
    EXPECT_EQ(whole.sum().item<float>(), 36);
    const at::Tensor conjugate =
        at::complex(at::ones({2}), at::full({2}, static_cast<double>(rank))).conj();
    world.all_reduce(conjugate);
    EXPECT_TRUE(conjugate.equal(at::complex(at::full({2}, 2.0), at::full({2}, -1.0))));
    const at::Tensor image =
        at::full({1, 2, 2, 2}, rank).contiguous(at::MemoryFormat::ChannelsLast);
    world.broadcast(image, 1);
    EXPECT_EQ(image.sum().item<int64_t>(), 8);
    EXPECT_EQ(world.all_gather(at::empty({0, 3})).sizes(), at::IntArrayRef({2, 0, 3}));
    return 0;
  }));
}

TEST(Collectives, ReduceScatterGivesEachRankItsPartOfTheSum) {
  EXPECT_TRUE(OnRanks(3, [](int rank) {
    const World world = Join();
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kShort, at::kComplexFloat}) {
      const at::Tensor own =
          (at::arange(12, at::kLong).reshape({6, 2}) + 100 * rank).to(at::kInt).to(type);
      const at::Tensor part = world.reduce_scatter(own);
      const at::Tensor sum = (at::arange(12, at::kLong).reshape({6, 2}) * 3 + 300).to(type);
      const at::Tensor expected = sum.slice(0, 2 * rank, 2 * rank + 2);
      EXPECT_EQ(part.sizes(), expected.sizes());
      EXPECT_TRUE(at::allclose(part, expected, 0.02)) << type;
    }
    EXPECT_EQ(world.reduce_scatter(at::full({3}, rank), Op::mean).item<int64_t>(), 1);
    EXPECT_THROW(world.reduce_scatter(at::ones({4})), Error);
    return 0;
  }));
}

TEST(Collectives, ThatWereStartedEndInTheirOrder) {
  EXPECT_TRUE(OnRanksBothWays(3, [](int rank) {
    const World world = Join();
    const at::Tensor a = at::full({1000}, rank), b = at::full({7}, rank, at::kShort);
    const at::Tensor gathered = at::empty({3, 1}, at::kLong), part = at::empty({1});
    Pending first = world.all_reduce_async(a);
    const Pending second = world.broadcast_async(b, 2);
    const Pending third = world.all_gather_async(at::full({1}, rank), gathered);
    const Pending fourth = world.reduce_scatter_async(at::ones({3}), part);
    const Pending last = world.barrier_async();
    int64_t seen = -1;
    first.then([&] { seen = a[0].item<int64_t>(); });
    for (const Pending& one : {last, fourth, third, second, first}) one.wait();
    EXPECT_TRUE(first.done());
    first.wait();
    EXPECT_EQ(seen, 3);
    EXPECT_EQ(b[6].item<int64_t>(), 2);
    EXPECT_EQ(gathered.sum().item<int64_t>(), 3);
    EXPECT_EQ(part.item<float>(), 3);
    EXPECT_TRUE(Pending().done());
    EXPECT_THROW(world.all_gather_async(at::ones({2}), at::empty({3, 3})), Error);
    return 0;
  }));
}

TEST(Subgroup, ItsMembersTalkAmongThemselves) {
  EXPECT_TRUE(OnRanks(4, [](int rank) {
    const World world = Join();
    const std::vector<int> members = rank % 2 == 0 ? std::vector{2, 0} : std::vector{1, 3};
    for (int round = 0; round < 2; ++round) {
      const World half = world.subgroup(members);
      EXPECT_EQ(half.size(), 2);
      EXPECT_EQ(members[static_cast<size_t>(half.rank())], rank);
      const at::Tensor sum = at::full({1}, rank);
      half.all_reduce(sum);
      EXPECT_EQ(sum.item<int64_t>(), rank % 2 == 0 ? 2 : 4);
      EXPECT_EQ(half.all_gather(at::full({1}, rank))[0].item<int64_t>(), members[0]);
    }
    EXPECT_EQ(world.subgroup({rank}).size(), 1);
    EXPECT_THROW(world.subgroup({(rank + 1) % 4}), Error);
    EXPECT_THROW(world.subgroup({rank, rank}), Error);
    EXPECT_THROW(world.subgroup({rank, 4}), Error);
    world.barrier();
    return 0;
  }));
}

TEST(Subgroup, ErrorsNameRanksOfTheWorld) {
  EXPECT_TRUE(OnRanks(3, [](int rank) {
    const World world = Join();
    if (rank == 0) {
      world.barrier();
      return 0;
    }
    const World pair = world.subgroup({1, 2});
    pair.barrier();  // both have it
    if (rank == 2) {
      pair.abort("out of patience");
    } else {
      try {
        pair.all_reduce(at::ones({1}));
        ADD_FAILURE() << "no error";
      } catch (const PeerLost& error) {
        EXPECT_THAT(error.ranks, ElementsAre(2));
        EXPECT_THAT(error.what(), HasSubstr("rank 2 left: out of patience"));
      }
    }
    world.barrier();  // the world itself is whole
    return 0;
  }));
}

TEST(Collectives, ThatDifferAreNamedOnEveryRankWhenChecked) {
  const auto body = [](int rank) {
    const World world = Join();
    const auto mismatch = [&](const auto& collective) {
      try {
        collective();
        ADD_FAILURE() << "no error";
      } catch (const Mismatch& error) {
        return std::string(error.what());
      }
      return std::string();
    };
    EXPECT_EQ(mismatch([&] { world.all_reduce(at::ones({rank == 2 ? 4 : 3})); }),
              "the ranks are in different collectives: rank 0 in all_reduce (sum) of [3] Float, "
              "rank 2 in all_reduce (sum) of [4] Float");
    EXPECT_THAT(mismatch([&] {
                  if (rank == 1) {
                    world.barrier();
                  } else {
                    world.broadcast(at::ones({2}), 2);
                  }
                }),
                HasSubstr("rank 0 in broadcast from rank 2 of [2] Float, rank 1 in barrier"));
    world.all_reduce(at::ones({1}));  // the group is whole
    return 0;
  };
  EXPECT_TRUE(OnRanks(3, body, {{"MUSTER_CHECK", "1"}}));
}

// ── Who is missing ──────────────────────────────────────────────────────────────────────────────

TEST(Collectives, ATimeoutNamesTheRanksThatDidNotCome) {
  int gave_up[2];
  ASSERT_EQ(pipe(gave_up), 0);
  EXPECT_TRUE(OnRanksBothWays(4, [&](int rank) {
    const World world = Join(milliseconds(600));
    char byte = 0;
    if (rank == 1 || rank == 3) {  // busy with something else until the others have given up
      EXPECT_EQ(read(gave_up[0], &byte, 1), 1);
      return 0;
    }
    try {
      world.all_reduce(at::ones({1}));
      ADD_FAILURE() << "no error";
    } catch (const Timeout& error) {
      EXPECT_THAT(error.missing, ElementsAre(1, 3));
      EXPECT_EQ(error.waited, milliseconds(600));
      EXPECT_THAT(error.what(), HasSubstr("waited 600 ms for ranks 1, 3"));
    } catch (const PeerLost& error) {  // the other one gave up a moment earlier
      EXPECT_THAT(error.ranks, ElementsAre(1, 3));
    }
    EXPECT_THROW(world.barrier(), PeerLost);
    EXPECT_EQ(write(gave_up[1], &byte, 1), 1);
    return 0;
  }));
  close(gave_up[0]);
  close(gave_up[1]);
}

TEST(Collectives, ALostPeerIsNamed) {
  EXPECT_TRUE(OnRanksBothWays(4, [](int rank) {
    const World world = Join();
    world.barrier();
    if (rank == 2) return 0;
    try {
      world.all_reduce(at::ones({1}));
      ADD_FAILURE() << "no error";
    } catch (const PeerLost& error) {
      EXPECT_THAT(error.ranks, ElementsAre(2));
    }
    return 0;
  }));
}

TEST(Collectives, AbortTellsTheOthersWhyWhileTheyWait) {
  EXPECT_TRUE(OnRanksBothWays(3, [](int rank) {
    const World world = Join();
    world.barrier();
    if (rank == 1) {
      world.abort("the disk is full");
      EXPECT_THROW(world.all_reduce(at::ones({1})), PeerLost);
      return 0;
    }
    try {
      world.all_reduce(at::ones({1}));
      ADD_FAILURE() << "no error";
    } catch (const PeerLost& error) {
      EXPECT_THAT(error.ranks, ElementsAre(1));
      EXPECT_THAT(error.what(), HasSubstr("rank 1 left: the disk is full"));
    }
    return 0;
  }));
}

}  // namespace
}  // namespace muster
