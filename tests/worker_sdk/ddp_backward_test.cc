// What a plain loss.backward() is told, which does not go through the wrapper.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>

#include "tests/worker_sdk/nets.h"
#include "tests/worker_sdk/ranks.h"

namespace muster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct OnePartIsLeftOut : SmallNet {
  torch::nn::Linear spare = register_module("spare", torch::nn::Linear(2, 2));
};

TEST(DdpBackward, NamesAnUnusedParameterInThatStepOnEveryRank) {
  EXPECT_TRUE(OnRanks(2, [](int rank) {
    const World world = Join();
    auto net = std::make_shared<OnePartIsLeftOut>();
    DistributedDataParallel ddp(net, world);
    try {
      Loss(ddp(BatchOf(0, rank).x), BatchOf(0, rank).y).backward();
      ADD_FAILURE() << "no error";
    } catch (const UnusedParameter& error) {
      EXPECT_THAT(error.names, ElementsAre("spare.weight", "spare.bias"));
      EXPECT_THAT(error.what(), HasSubstr("find_unused_parameters"));
    }
    EXPECT_THROW(ddp(BatchOf(1, rank).x), PeerLost);
    return 0;
  }));
}

TEST(DdpBackward, ASecondOneOfOneForwardIsATypedError) {
  EXPECT_TRUE(OnRanks(1, [](int) {
    const World world = Join();
    auto net = std::make_shared<SmallNet>();
    DistributedDataParallel ddp(net, world);
    const at::Tensor loss = ddp(BatchOf(0, 0).x).sum();
    loss.backward({}, /*retain_graph=*/true);
    EXPECT_THROW(loss.backward(), Error);
    ddp(BatchOf(1, 0).x).sum().backward();
    return 0;
  }));
}

TEST(DdpBackward, EveryKindOfStepGoesThrough) {
  const DDPOptions options[] = {
      DDPOptions(), DDPOptions().find_unused_parameters(true), DDPOptions().static_graph(true),
      DDPOptions().gradient_as_bucket_view(true), DDPOptions().bucket_cap_mb(1e-4)};
  for (const DDPOptions& option : options) {
    EXPECT_TRUE(OnRanks(2, [&](int rank) {
      const World world = Join();
      auto net = std::make_shared<SmallNet>();
      DistributedDataParallel ddp(net, world, option);
      for (int64_t step = 0; step < 4; ++step) {
        ddp.zero_grad();
        Loss(ddp(BatchOf(step, rank).x), BatchOf(step, rank).y).backward();
        EXPECT_LT(Distance(FlatGrad(*net), ReferenceGradient(step, 2)), 1e-6);
      }
      return 0;
    }));
  }
}

TEST(DdpBackward, AStaticGraphAccumulatesAfterItsFirstStepAndRefusesToBefore) {
  EXPECT_TRUE(OnRanks(2, [](int rank) {
    const World world = Join();
    auto net = std::make_shared<SmallNet>();
    DistributedDataParallel ddp(net, world, DDPOptions().static_graph(true));
    const auto backward = [&](int64_t step) {
      Loss(ddp(BatchOf(step, rank).x), BatchOf(step, rank).y).backward();
    };
    {
      const auto alone = ddp.no_sync();
      EXPECT_THROW(backward(0), Error);
    }
    backward(0);
    for (int64_t step = 1; step < 7; step += 2) {
      ddp.zero_grad();
      {
        const auto alone = ddp.no_sync();
        backward(step);
      }
      backward(step + 1);
      const at::Tensor both = ReferenceGradient(step, 2) + ReferenceGradient(step + 1, 2);
      EXPECT_LT(Distance(FlatGrad(*net), both), 1e-6);
    }
    return 0;
  }));
}

TEST(DdpBackward, APenaltyOnGradientsOfTheInputIsNoBackwardOfItsOwn) {
  EXPECT_TRUE(OnRanks(2, [](int rank) {
    const World world = Join();
    auto net = std::make_shared<SmallNet>();
    DistributedDataParallel ddp(net, world);
    for (int64_t step = 0; step < 2; ++step) {
      const at::Tensor x = BatchOf(step, rank).x.clone().requires_grad_();
      const at::Tensor output = ddp(x);
      const at::Tensor slope =
          torch::autograd::grad({output.sum()}, {x}, {}, std::nullopt, /*create_graph=*/true)[0];
      (output.sum() + slope.norm()).backward();
      EXPECT_EQ(ddp.max_parameter_difference(), 0);
    }
    const at::Tensor all = world.all_gather(FlatGrad(*net));
    EXPECT_TRUE(all[0].equal(all[1])) << "the gradients are averaged";
    return 0;
  }));
}

TEST(DdpBackward, AnEvaluationBeforeItChangesNothing) {
  EXPECT_TRUE(OnRanks(2, [](int rank) {
    const World world = Join();
    auto net = std::make_shared<SmallNet>();
    DistributedDataParallel ddp(net, world);
    for (int64_t step = 0; step < 2; ++step) {
      ddp.zero_grad();
      const at::Tensor loss = Loss(ddp(BatchOf(step, rank).x), BatchOf(step, rank).y);
      {
        const at::NoGradGuard no_grad;
        ddp(BatchOf(step + 1, rank).x);
      }
      step == 0 ? ddp.backward(loss) : loss.backward();
      EXPECT_LT(Distance(FlatGrad(*net), ReferenceGradient(step, 2)), 1e-6);
    }
    return 0;
  }));
}

TEST(DdpBackward, TheGraphMayOutliveTheWrapper) {
  EXPECT_TRUE(OnRanks(1, [](int) {
    const World world = Join();
    auto net = std::make_shared<SmallNet>();
    at::Tensor loss;
    {
      DistributedDataParallel ddp(net, world);
      loss = ddp(BatchOf(0, 0).x).sum();
    }
    loss.backward();
    EXPECT_GT(FlatGrad(*net).abs().sum().item<float>(), 0);
    return 0;
  }));
}

}  // namespace
}  // namespace muster
