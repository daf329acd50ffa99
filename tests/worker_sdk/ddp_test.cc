#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/nn/modules/batchnorm.h>

#include "tests/worker_sdk/nets.h"
#include "tests/worker_sdk/ranks.h"

namespace muster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using torch::nn::Linear;
using torch::optim::SGD;
using torch::optim::SGDOptions;

constexpr int64_t kSteps = 10;

at::Tensor TrainTogether(const World& world, const DDPOptions& options, bool typed_backward) {
  auto net = std::make_shared<SmallNet>();
  DistributedDataParallel ddp(net, world, options);
  SGD optimizer(net->parameters(), SGDOptions(0.1).momentum(0.9));
  for (int64_t step = 0; step < kSteps; ++step) {
    const Batch batch = BatchOf(step, world.rank());
    ddp.zero_grad(step % 2 == 0);  // both ways
    const at::Tensor loss = Loss(ddp(batch.x), batch.y);
    if (typed_backward) {
      ddp.backward(loss);
    } else {
      loss.backward();
    }
    optimizer.step();
  }
  EXPECT_EQ(ddp.max_parameter_difference(), 0);
  ddp.check_consistency();
  return Flat(*net);
}

at::Tensor TrainAlone(int64_t ranks) {
  SmallNet net;
  SGD optimizer(net.parameters(), SGDOptions(0.1).momentum(0.9));
  for (int64_t step = 0; step < kSteps; ++step) {
    const Batch joined = JoinedBatch(step, ranks);
    optimizer.zero_grad();
    Loss(net.forward(joined.x), joined.y).backward();
    optimizer.step();
  }
  return Flat(net);
}

class DdpWorld : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, DdpWorld, testing::Values(1, 2, 4));

TEST_P(DdpWorld, TrainsAsOneProcessOnTheJoinedBatchWithEveryOption) {
  const DDPOptions options[] = {
      DDPOptions(),
      DDPOptions().find_unused_parameters(true),
      DDPOptions().static_graph(true),
      DDPOptions().gradient_as_bucket_view(true),
      DDPOptions().bucket_cap_mb(1e-5),
  };
  EXPECT_TRUE(OnRanks(GetParam(), [&](int) {
    const World world = Join();
    for (size_t i = 0; i < std::size(options); ++i) {
      for (const bool typed : {true, false}) {
        const at::Tensor parameters = TrainTogether(world, options[i], typed);
        EXPECT_LT(Distance(parameters, TrainAlone(GetParam())), 1e-5) << "option " << i;
      }
    }
    return 0;
  }));
}

TEST(Ddp, StartsFromTheLeadersParametersAndBuffers) {
  EXPECT_TRUE(OnRanks(2, [](int rank) {
    const World world = Join();
    auto net = std::make_shared<SmallNet>();
    net->register_buffer("counter", at::full({1}, rank + 7));
    if (rank == 1) net->fc1->weight.detach().zero_();
    DistributedDataParallel ddp(net, world);
    EXPECT_EQ(Distance(Flat(*net), Flat(SmallNet())), 0);
    EXPECT_EQ(net->named_buffers()["counter"].item<int64_t>(), 7);
    return 0;
  }));
}

TEST(Ddp, NoSyncAccumulatesAndTheNextStepAveragesAllOfIt) {
  EXPECT_TRUE(OnRanks(2, [](int rank) {
    const World world = Join();
    auto net = std::make_shared<SmallNet>();
    DistributedDataParallel ddp(net, world);
    for (int64_t round = 0; round < 3; ++round) {
      ddp.zero_grad();
      {
        const auto skip = ddp.no_sync();
        const Batch batch = BatchOf(2 * round, rank);
        ddp.backward(Loss(ddp(batch.x), batch.y));
      }
      const at::Tensor local = world.all_gather(FlatGrad(*net));
      EXPECT_GT(Distance(local[0], local[1]), 1e-3) << "nothing may be sent yet";
      const Batch batch = BatchOf(2 * round + 1, rank);
      ddp.backward(Loss(ddp(batch.x), batch.y));
      const at::Tensor expected =
          ReferenceGradient(2 * round, 2) + ReferenceGradient(2 * round + 1, 2);
      EXPECT_LT(Distance(FlatGrad(*net), expected), 1e-6);
    }
    return 0;
  }));
}

// Uses layer a, b or both.
struct TwoArms : torch::nn::Module {
  TwoArms() { Fill(*this); }
  std::pair<at::Tensor, at::Tensor> forward(const at::Tensor& x) { return {a(x), b(x)}; }
  at::Tensor Arm(bool first, const at::Tensor& x) { return first ? a(x) : b(x); }
  Linear a = register_module("a", Linear(6, 2));
  Linear b = register_module("b", Linear(6, 2));
};

struct OneArm : TwoArms {
  at::Tensor forward(const at::Tensor& x, bool first) { return Arm(first, x); }
};

TEST(Ddp, UnusedParametersAreTheUnionOverTheNoSyncWindow) {
  EXPECT_TRUE(OnRanks(2, [](int rank) {
    const World world = Join();
    auto net = std::make_shared<OneArm>();
    DistributedDataParallel ddp(net, world, DDPOptions().find_unused_parameters(true));
    for (int64_t step = 0; step < 3; ++step) {
      ddp.zero_grad();
      const at::Tensor x = BatchOf(step, rank).x;
      {
        const auto skip = ddp.no_sync();
        ddp.backward(ddp(x, true).sum());
      }
      ddp.backward(ddp(x, false).sum());
      const at::Tensor both = world.all_gather(FlatGrad(*net));
      EXPECT_EQ(Distance(both[0], both[1]), 0);
      const at::Tensor mean_x = (BatchOf(step, 0).x.sum(0) + BatchOf(step, 1).x.sum(0)) / 2;
      EXPECT_LT(Distance(net->a->weight.grad()[0], mean_x), 1e-5);
      EXPECT_LT(Distance(net->b->weight.grad()[0], mean_x), 1e-5);
    }
    return 0;
  }));
}

TEST(Ddp, RanksMayUseDifferentBranches) {
  EXPECT_TRUE(OnRanks(2, [](int rank) {
    const World world = Join();
    auto net = std::make_shared<OneArm>();
    DistributedDataParallel ddp(net, world, DDPOptions().find_unused_parameters(true));
    for (int64_t step = 0; step < 4; ++step) {
      ddp.zero_grad();
      ddp.backward(ddp(BatchOf(step, rank).x, (step + rank) % 2 == 0).sum());
      const at::Tensor both = world.all_gather(FlatGrad(*net));
      EXPECT_EQ(Distance(both[0], both[1]), 0);
      const int64_t user_of_a = step % 2 == 0 ? 0 : 1;
      const at::Tensor half = BatchOf(step, user_of_a).x.sum(0) / 2;
      EXPECT_LT(Distance(net->a->weight.grad()[0], half), 1e-5);
    }
    return 0;
  }));
}

TEST(Ddp, AnUnusedParameterFailsInItsStepOnEveryRankByName) {
  EXPECT_TRUE(OnRanks(2, [](int rank) {
    const World world = Join();
    auto net = std::make_shared<OneArm>();
    DistributedDataParallel ddp(net, world);
    try {
      ddp.backward(ddp(BatchOf(0, rank).x, true).sum());
      ADD_FAILURE() << "no error";
    } catch (const UnusedParameter& error) {
      EXPECT_THAT(error.names, ElementsAre("b.weight", "b.bias"));
    }
    EXPECT_THROW(ddp(BatchOf(1, rank).x, true), PeerLost);
    return 0;
  }));
}

TEST(Ddp, AParameterUnusedOnOneRankFailsOnEveryRankByName) {
  EXPECT_TRUE(OnRanks(3, [](int rank) {
    const World world = Join();
    auto net = std::make_shared<TwoArms>();
    DistributedDataParallel ddp(net, world);
    for (int64_t step = 0; step < 2; ++step) {
      const auto [a, b] = ddp(BatchOf(step, rank).x);
      ddp.backward(a.sum() + b.sum());
    }
    try {
      const auto [a, b] = ddp(BatchOf(2, rank).x);
      ddp.backward(rank == 1 ? b.sum() : a.sum() + b.sum());
      ADD_FAILURE() << "no error";
    } catch (const UnusedParameter& error) {
      EXPECT_THAT(error.names, ElementsAre("a.weight", "a.bias"));
      EXPECT_THAT(error.what(), HasSubstr("on rank 1 no gradient"));
    }
    return 0;
  }));
}

TEST(Ddp, OutputsLeftOutOfTheLossDoNotStall) {
  EXPECT_TRUE(OnRanks(2, [](int rank) {
    const World world = Join();
    for (const bool fixed : {true, false}) {
      auto net = std::make_shared<TwoArms>();
      DistributedDataParallel ddp(net, world,
                                  DDPOptions().find_unused_parameters(!fixed).static_graph(fixed));
      for (int64_t step = 0; step < 3; ++step) {
        ddp.zero_grad();
        const auto [a, b] = ddp(BatchOf(step, rank).x);
        ddp.backward(a.sum());
        const at::Tensor both = world.all_gather(FlatGrad(*net));
        EXPECT_EQ(Distance(both[0], both[1]), 0);
        EXPECT_EQ(net->b->weight.grad().defined() ? net->b->weight.grad().abs().max().item<float>()
                                                  : 0.0f,
                  0.0f);
      }
    }
    return 0;
  }));
}

struct WithConstant : SmallNet {
  std::map<std::string, at::Tensor> forward(const at::Tensor& x) {
    return {{"out", SmallNet::forward(x)}, {"constant", at::ones({2})}, {"none", at::Tensor()}};
  }
};

TEST(Ddp, AnOutputWithoutAGradientIsLeftAlone) {
  EXPECT_TRUE(OnRanks(2, [](int rank) {
    const World world = Join();
    auto net = std::make_shared<WithConstant>();
    DistributedDataParallel ddp(net, world, DDPOptions().find_unused_parameters(true));
    const Batch batch = BatchOf(0, rank);
    auto output = ddp(batch.x);
    EXPECT_FALSE(output["constant"].grad_fn());
    ddp.backward(Loss(output["out"], batch.y));
    EXPECT_LT(Distance(FlatGrad(*net), ReferenceGradient(0, 2)), 1e-6);
    return 0;
  }));
}

TEST(Ddp, ASecondBackwardOfOneForwardIsATypedError) {
  EXPECT_TRUE(OnRanks(1, [](int) {
    const World world = Join();
    auto net = std::make_shared<SmallNet>();
    DistributedDataParallel ddp(net, world);
    const at::Tensor loss = ddp(BatchOf(0, 0).x).sum();
    ddp.backward(loss);
    EXPECT_THROW(ddp.backward(loss), Error);
    return 0;
  }));
}

struct Counting : SmallNet {
  at::Tensor forward(const at::Tensor& x) {
    seen = seen + x.abs().sum().detach();  // a new tensor in the buffer's place
    return SmallNet::forward(x);
  }
  at::Tensor& seen = register_buffer("seen", at::zeros({1}));
};

TEST(Ddp, ABufferThatIsReplacedInForwardIsStillTheLeaders) {
  EXPECT_TRUE(OnRanks(2, [](int rank) {
    const World world = Join();
    auto net = std::make_shared<Counting>();
    DistributedDataParallel ddp(net, world);
    double leaders = 0;
    for (int64_t step = 0; step < 3; ++step) {
      ddp.backward(ddp(BatchOf(step, rank).x).sum());
      const double own = BatchOf(step, rank).x.abs().sum().item<double>();
      EXPECT_NEAR(net->seen.item<float>(), leaders + own, 1e-2);
      leaders += BatchOf(step, 0).x.abs().sum().item<double>();
    }
    return 0;
  }));
}

TEST(Ddp, BatchNormTrainsAndItsRunningStatisticsAreTheLeaders) {
  EXPECT_TRUE(OnRanks(2, [](int rank) {
    const World world = Join();
    struct Normed : SmallNet {
      at::Tensor forward(const at::Tensor& x) { return SmallNet::forward(bn(x)); }
      torch::nn::BatchNorm1d bn = register_module("bn", torch::nn::BatchNorm1d(6));
    };
    auto net = std::make_shared<Normed>();
    DistributedDataParallel ddp(net, world);
    for (int64_t step = 0; step < 3; ++step) ddp.backward(ddp(BatchOf(step, rank).x).sum());
    ddp(BatchOf(9, 0).x);
    const at::Tensor both = world.all_gather(net->bn->running_mean);
    EXPECT_EQ(Distance(both[0], both[1]), 0);
    return 0;
  }));
}

struct Tied : SmallNet {
  Tied() { again->weight = fc1->weight; }
  at::Tensor forward(const at::Tensor& x) { return SmallNet::forward(x + again(x).sum(1, true)); }
  Linear again = register_module("again", Linear(torch::nn::LinearOptions(6, 5).bias(false)));
};

TEST(Ddp, TiedAndReusedParametersAreReducedOnce) {
  EXPECT_TRUE(OnRanks(2, [](int rank) {
    Tied reference;
    reference.again->weight = reference.fc1->weight;
    const Batch joined = JoinedBatch(0, 2);
    Loss(reference.forward(joined.x), joined.y).backward();
    const World world = Join();
    for (const bool find_unused : {false, true}) {
      auto net = std::make_shared<Tied>();
      // The registry must know of the sharing too.
      net->again->register_parameter("shared", net->fc1->weight);
      DistributedDataParallel ddp(
          net, world, DDPOptions().find_unused_parameters(find_unused).ignore({"again.weight"}));
      const Batch batch = BatchOf(0, rank);
      ddp.backward(Loss(ddp(batch.x), batch.y));
      EXPECT_LT(Distance(net->fc1->weight.grad(), reference.fc1->weight.grad()), 1e-6);
    }
    return 0;
  }));
}

TEST(Ddp, AModelThatDiffersIsNamedOnEveryRank) {
  struct Wide : torch::nn::Module {
    explicit Wide(int64_t width, bool more = false) {
      register_module("fc1", Linear(6, 5));
      register_module("fc2", Linear(5, width));
      if (more) register_module("fc3", Linear(3, 3));
    }
    at::Tensor forward(const at::Tensor& x) { return x; }
  };
  EXPECT_TRUE(OnRanks(3, [](int rank) {
    const World world = Join();
    const auto mismatch = [&](const std::shared_ptr<Wide>& net, DDPOptions options) {
      try {
        DistributedDataParallel ddp(net, world, options);
        ADD_FAILURE() << "no error";
      } catch (const Mismatch& error) {
        return error;
      }
      return Mismatch("");
    };
    const Mismatch wide = mismatch(std::make_shared<Wide>(rank == 1 ? 4 : 3), {});
    EXPECT_EQ(wide.parameter, "fc2.weight");
    EXPECT_THAT(wide.what(), HasSubstr("is [3, 5] Float on rank 0, rank 1 has [4, 5] Float"));
    EXPECT_EQ(mismatch(std::make_shared<Wide>(3, rank == 2), {}).parameter, "fc3.weight");
    EXPECT_EQ(mismatch(std::make_shared<Wide>(3, rank != 2), {}).parameter, "fc3.weight");
    const Mismatch option =
        mismatch(std::make_shared<Wide>(3), DDPOptions().find_unused_parameters(rank == 1));
    EXPECT_EQ(option.parameter, "");
    EXPECT_THAT(option.what(), HasSubstr("find_unused_parameters"));
    DistributedDataParallel fine(std::make_shared<Wide>(3), world);  // the group is whole
    return 0;
  }));
}

TEST(Ddp, WrappedAgainAndAgainTheHooksFireOnce) {
  EXPECT_TRUE(OnRanks(2, [](int rank) {
    const World world = Join();
    auto net = std::make_shared<SmallNet>();
    for (int64_t round = 0; round < 10; ++round) {
      DistributedDataParallel ddp(net, world);
      ddp.zero_grad();
      const Batch batch = BatchOf(round, rank);
      ddp.backward(Loss(ddp(batch.x), batch.y));
      EXPECT_LT(Distance(FlatGrad(*net), ReferenceGradient(round, 2)), 1e-6);
    }
    return 0;
  }));
}

TEST(Ddp, OutputsMayBeDropped) {
  EXPECT_TRUE(OnRanks(2, [](int rank) {
    const World world = Join();
    auto net = std::make_shared<SmallNet>();
    DistributedDataParallel ddp(net, world);
    for (int64_t step = 0; step < 3; ++step) {
      ddp.zero_grad();
      const Batch batch = BatchOf(step, rank);
      ddp(batch.x);
      ddp(batch.x);
      {
        const at::NoGradGuard no_grad;
        ddp(batch.x);
      }
      ddp.backward(Loss(ddp(batch.x), batch.y));
      EXPECT_LT(Distance(FlatGrad(*net), ReferenceGradient(step, 2)), 1e-6);
    }
    return 0;
  }));
}

TEST(Ddp, BFloat16ParametersAndABoolBufferTrain) {
  EXPECT_TRUE(OnRanks(2, [](int rank) {
    const World world = Join();
    auto net = std::make_shared<SmallNet>();
    net->register_buffer("mask", at::ones({3}, at::kBool));
    net->to(at::kBFloat16);
    DistributedDataParallel ddp(net, world);
    for (int64_t step = 0; step < 3; ++step) {
      ddp.backward(ddp(BatchOf(step, rank).x.to(at::kBFloat16)).sum());
    }
    const at::Tensor both = world.all_gather(FlatGrad(*net));
    EXPECT_TRUE(both[0].equal(both[1]));
    return 0;
  }));
}

TEST(Ddp, BucketsHoldEveryGradientOnce) {
  EXPECT_TRUE(OnRanks(1, [](int) {
    const World world = Join();
    auto net = std::make_shared<SmallNet>();
    DistributedDataParallel ddp(net, world, DDPOptions().bucket_cap_mb(1e-5));
    for (int64_t step = 0; step < 2; ++step) ddp.backward(ddp(BatchOf(step, 0).x).sum());
    ddp(BatchOf(2, 0).x);
    int64_t sum = 0;
    for (const int64_t bytes : ddp.stats().bucket_bytes) sum += bytes;
    EXPECT_EQ(sum, Flat(*net).numel() * 4);
    EXPECT_GT(ddp.stats().bucket_bytes.size(), 1u);
    return 0;
  }));
}

TEST(Ddp, GradientsAreCheckedAgainstOneProcess) {
  EXPECT_TRUE(OnRanks(2, [](int rank) {
    const World world = Join();
    auto net = std::make_shared<SmallNet>();
    DistributedDataParallel ddp(net, world);
    const Batch batch = BatchOf(0, rank), joined = JoinedBatch(0, 2);
    ddp.backward(Loss(ddp(batch.x), batch.y));
    const at::Tensor before = FlatGrad(*net).clone();
    EXPECT_LT(ddp.max_gradient_difference(Loss(net->forward(joined.x), joined.y)), 1e-6);
    EXPECT_EQ(Distance(before, FlatGrad(*net)), 0) << "the check must not touch them";
    const at::Tensor wrong = Loss(net->forward(batch.x), batch.y);
    EXPECT_GT(ddp.max_gradient_difference(wrong), 1e-3);
    return 0;
  }));
}

TEST(Ddp, ARankThatStrayedIsFoundByName) {
  EXPECT_TRUE(OnRanks(2, [](int rank) {
    const World world = Join();
    auto net = std::make_shared<SmallNet>();
    DistributedDataParallel ddp(net, world);
    if (rank == 1) net->fc2->bias.detach()[1] += 0.25;
    EXPECT_NEAR(ddp.max_parameter_difference(), 0.25, 1e-6);
    try {
      ddp.check_consistency(0.1);
      ADD_FAILURE() << "no error";
    } catch (const Mismatch& error) {
      EXPECT_EQ(error.parameter, "fc2.bias");
      EXPECT_TRUE(error.everywhere);
      EXPECT_THAT(error.what(), HasSubstr("fc2.bias is not on rank 1 what it is on rank 0; it "
                                          "differs by up to 0.25"));
    }
    // The first one, however small the difference is, and only if it is to count.
    if (rank == 1) net->fc1->bias.detach()[2] *= 1 + 1e-6;
    try {
      ddp.check_consistency();
      ADD_FAILURE() << "no error";
    } catch (const Mismatch& error) {
      EXPECT_EQ(error.parameter, "fc1.bias");
    }
    if (rank == 1) net->fc2->bias.detach()[1] = NAN;
    EXPECT_EQ(ddp.max_parameter_difference(), INFINITY);
    return 0;
  }));
}

TEST(Ddp, ADeadPeerIsAPeerLost) {
  EXPECT_TRUE(OnRanks(2, [](int rank) {
    const World world = Join();
    auto net = std::make_shared<SmallNet>();
    DistributedDataParallel ddp(net, world);
    ddp.backward(ddp(BatchOf(0, rank).x).sum());
    const at::Tensor loss = ddp(BatchOf(1, rank).x).sum();
    if (rank == 1) return 0;  // leaves without a word
    EXPECT_THROW(ddp.backward(loss), PeerLost);
    return 0;
  }));
}

struct Throwing : torch::autograd::Function<Throwing> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x) {
    return x.clone();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 const torch::autograd::variable_list&) {
    throw std::runtime_error("the operator broke");
  }
};

TEST(Ddp, AnErrorInOneRanksBackwardReachesTheOthersWithItsCause) {
  EXPECT_TRUE(OnRanks(2, [](int rank) {
    const World world = Join();
    auto net = std::make_shared<SmallNet>();
    DistributedDataParallel ddp(net, world);
    const at::Tensor output = ddp(BatchOf(0, rank).x);
    const at::Tensor loss = (rank == 1 ? Throwing::apply(output) : output).sum();
    try {
      ddp.backward(loss);
      ADD_FAILURE() << "no error";
    } catch (const PeerLost& error) {
      EXPECT_EQ(rank, 0);
      EXPECT_THAT(error.ranks, ElementsAre(1));
      EXPECT_THAT(error.what(), HasSubstr("the operator broke"));
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(rank, 1);
      EXPECT_STREQ(error.what(), "the operator broke");
    }
    return 0;
  }));
}

TEST(Ddp, NothingToTrainIsATypedError) {
  EXPECT_TRUE(OnRanks(1, [](int) {
    const World world = Join();
    auto net = std::make_shared<SmallNet>();
    for (at::Tensor& parameter : net->parameters()) parameter.requires_grad_(false);
    EXPECT_THROW(DistributedDataParallel(net, world), Error);
    return 0;
  }));
}

}  // namespace
}  // namespace muster
