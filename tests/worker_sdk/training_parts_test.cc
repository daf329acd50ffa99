// Mixed precision, batch norm over the ranks, learning rates.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/instancenorm.h>

#include <cmath>
#include <filesystem>

#include "tests/worker_sdk/nets.h"
#include "tests/worker_sdk/ranks.h"

namespace muster {
namespace {

using testing::HasSubstr;
using torch::nn::Linear;
using torch::optim::SGD;
using torch::optim::SGDOptions;

// ── Mixed precision ─────────────────────────────────────────────────────────────────────────────

TEST(Autocast, LowersThePrecisionWithinAndNestsAndEnds) {
  EXPECT_TRUE(OnRanks(1, [](int) {
    SmallNet net;
    const at::Tensor x = BatchOf(0, 0).x;
    const auto type = [&] { return net.forward(x).scalar_type(); };
    {
      const Autocast outer(at::kCPU);
      EXPECT_EQ(type(), at::kBFloat16);
      {
        const Autocast off(at::kCPU, std::nullopt, false);
        EXPECT_EQ(type(), at::kFloat);
        const Autocast half(at::kCPU, at::kHalf);
        EXPECT_EQ(type(), at::kHalf);
      }
      EXPECT_EQ(type(), at::kBFloat16);
    }
    EXPECT_EQ(type(), at::kFloat);
    return 0;
  }));
}

TEST(GradScaler, AnInfOnOneRankMakesEveryRankSkipTheStep) {
  EXPECT_TRUE(OnRanks(3, [](int rank) {
    const World world = Join();
    SmallNet net;  // not wrapped: the gradients stay the rank's own
    SGD optimizer(net.parameters(), SGDOptions(0.1));
    GradScaler scaler(world, GradScalerOptions().init_scale(8).growth_interval(2));
    const at::Tensor before = Flat(net);
    const std::vector<double> scales = {8, 16, 8, 8, 16};
    for (int64_t step = 0; step < 5; ++step) {
      optimizer.zero_grad();
      const at::Tensor loss = net.forward(BatchOf(step, rank).x).sum();
      scaler.scale(step == 2 && rank == 1 ? loss * INFINITY : loss).backward();
      EXPECT_EQ(scaler.step(optimizer), step != 2);
      scaler.update();
      EXPECT_EQ(scaler.current_scale(), scales[static_cast<size_t>(step)]);
    }
    EXPECT_TRUE(Flat(net).isfinite().all().item<bool>());
    EXPECT_GT(Distance(before, Flat(net)), 0);
    return 0;
  }));
}

TEST(GradScaler, WrongUseIsATypedError) {
  EXPECT_TRUE(OnRanks(2, [](int rank) {
    const World world = Join();
    SmallNet net;
    SGD optimizer(net.parameters(), SGDOptions(0.1));
    GradScaler scaler(world);
    EXPECT_THROW(scaler.update(), Error);
    scaler.scale(net.forward(BatchOf(0, rank).x).sum()).backward();
    scaler.unscale(optimizer);
    EXPECT_THROW(scaler.unscale(optimizer), Error);
    EXPECT_TRUE(scaler.step(optimizer));
    EXPECT_THROW(scaler.step(optimizer), Error);
    EXPECT_THROW(scaler.unscale(optimizer), Error);
    scaler.update();
    EXPECT_THROW(GradScaler(world, GradScalerOptions().growth_factor(1)), Error);
    EXPECT_THROW(GradScaler(world, GradScalerOptions().init_scale(1 + rank)), Mismatch);
    return 0;
  }));
}

TEST(GradScaler, StateBringsItsScaleBack) {
  const auto file = std::filesystem::path(testing::TempDir()) / "scaler.ckpt";
  EXPECT_TRUE(OnRanks(2, [&](int rank) {
    const World world = Join();
    SmallNet net;
    SGD optimizer(net.parameters(), SGDOptions(0.1));
    GradScaler scaler(world, GradScalerOptions().init_scale(8).growth_interval(3));
    Cosine cosine(optimizer, 10, CosineOptions().warmup(2));
    State state(world);
    state.add("optimizer", optimizer).add("scaler", scaler).add("cosine", cosine);
    const auto train = [&](int64_t steps) {
      for (int64_t step = 0; step < steps; ++step) {
        optimizer.zero_grad();
        scaler.scale(net.forward(BatchOf(step, rank).x).sum()).backward();
        scaler.step(optimizer);
        scaler.update();
        cosine.step();
      }
      return std::pair(scaler.current_scale(), optimizer.param_groups()[0].options().get_lr());
    };
    train(4);
    state.save(file);
    const auto later = train(2);
    EXPECT_TRUE(state.load(file));
    EXPECT_EQ(cosine.steps(), 4);
    EXPECT_EQ(train(2), later);
    EXPECT_EQ(later.first, 32);
    return 0;
  }));
}

// ── Batch norm over the ranks ───────────────────────────────────────────────────────────────────

struct Normed : torch::nn::Module {
  Normed() { Fill(*this); }
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor seen = conv(x);
    return fc(at::relu(bn(x.size(0) == 0 ? seen : instance(seen))).flatten(1));
  }
  torch::nn::Conv2d conv = register_module("conv", torch::nn::Conv2d(1, 2, 2));
  torch::nn::BatchNorm2d bn = register_module("bn", torch::nn::BatchNorm2d(2));
  torch::nn::InstanceNorm2d instance = register_module("instance", torch::nn::InstanceNorm2d(2));
  Linear fc = register_module("fc", Linear(8, 3));
};

at::Tensor Images(int64_t step, int64_t rank, int64_t count) {
  const int64_t first = 9 * (100 * step + 10 * rank);
  return at::cos(at::arange(first, first + 9 * count).to(at::kFloat)).reshape({count, 1, 3, 3});
}

// Batches of 0, 1 and 5 pictures.
constexpr int64_t kPictures[] = {5, 0, 1};

TEST(SyncBatchNorm, UnevenAndEmptyBatchesCountAsInOneProcess) {
  EXPECT_TRUE(OnRanks(3, [](int rank) {
    const World world = Join();
    auto net = std::make_shared<Normed>();
    DistributedDataParallel ddp(net, world, DDPOptions().sync_batch_norm(true));
    Normed alone;
    for (int64_t step = 0; step < 3; ++step) {
      ddp.zero_grad();
      alone.zero_grad();
      const at::Tensor output = ddp(Images(step, rank, kPictures[rank]));
      ddp.backward(output.square().sum());
      std::vector<at::Tensor> all;
      for (int64_t r = 0; r < 3; ++r) all.push_back(Images(step, r, kPictures[r]));
      const at::Tensor expected = alone.forward(at::cat(all));
      (expected.square().sum() / 3).backward();
      const int64_t first = rank == 0 ? 0 : 5;
      EXPECT_LT(
          Distance(at::cat({output, at::zeros({1, 3})}),
                   at::cat({expected.slice(0, first, first + kPictures[rank]), at::zeros({1, 3})})),
          1e-5);
      EXPECT_LT(Distance(FlatGrad(*net), FlatGrad(alone)), 1e-4);
      EXPECT_LT(Distance(net->bn->running_mean, alone.bn->running_mean), 1e-6);
      EXPECT_LT(Distance(net->bn->running_var, alone.bn->running_var), 1e-6);
    }
    return 0;
  }));
}

TEST(SyncBatchNorm, EvaluationAndOtherModelsAreNotTouched) {
  EXPECT_TRUE(OnRanks(2, [](int rank) {
    const World world = Join();
    auto net = std::make_shared<Normed>();
    DistributedDataParallel ddp(net, world, DDPOptions().sync_batch_norm(true));
    ddp.backward(ddp(Images(0, rank, 3)).sum());
    // Not through the wrapper: this rank alone, or it would wait for the other.
    if (rank == 0) net->forward(Images(1, rank, 3));
    net->eval();
    const at::NoGradGuard no_grad;
    if (rank == 0) net->forward(Images(2, rank, 3));
    world.barrier();
    EXPECT_THROW(ddp.join([] {}), Error);
    return 0;
  }));
}

TEST(SyncBatchNorm, OneValueOverAllRanksIsATypedError) {
  struct Bare : torch::nn::Module {
    at::Tensor forward(const at::Tensor& x) { return bn(x); }
    torch::nn::BatchNorm1d bn = register_module("bn", torch::nn::BatchNorm1d(4));
  };
  EXPECT_TRUE(OnRanks(2, [](int) {
    const World world = Join();
    DistributedDataParallel ddp(std::make_shared<Bare>(), world,
                                DDPOptions().sync_batch_norm(true));
    try {
      ddp(at::empty({0, 4}));
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("more than one value per channel"));
    }
    return 0;
  }));
}

// ── Learning rates, clipping ────────────────────────────────────────────────────────────────────

TEST(LearningRate, RisesFallsAndStays) {
  EXPECT_TRUE(OnRanks(2, [](int) {
    const World world = Join();
    EXPECT_EQ(linear_scaled_lr(0.1, world), 0.2);
    EXPECT_EQ(linear_scaled_lr(0.1, world, 4), 0.05);
    SmallNet net;
    SGD warm(net.parameters(), SGDOptions(1)), cool(net.parameters(), SGDOptions(1));
    const auto rate = [](SGD& optimizer) { return optimizer.param_groups()[0].options().get_lr(); };
    Warmup warmup(warm, 4, 0.2);
    Cosine cosine(cool, 6, CosineOptions().warmup(2).from(0.5).min_lr(0.1));
    const double rising[] = {0.2, 0.4, 0.6, 0.8, 1, 1, 1, 1};
    const double falling[] = {0.5,  0.75,
                              1,    0.1 + 0.9 * (1 + std::sqrt(0.5)) / 2,
                              0.55, 0.1 + 0.9 * (1 - std::sqrt(0.5)) / 2,
                              0.1,  0.1};
    for (size_t step = 0; step < 8; ++step) {
      EXPECT_NEAR(rate(warm), rising[step], 1e-12);
      EXPECT_NEAR(rate(cool), falling[step], 1e-12);
      warmup.step();
      cosine.step();
    }
    EXPECT_THROW(Warmup(warm, 0), Error);
    EXPECT_THROW(Cosine(cool, 2, CosineOptions().warmup(2)), Error);
    return 0;
  }));
}

TEST(Clipping, IsTheSameOnEveryRankAndRefusedBeforeTheAverage) {
  EXPECT_TRUE(OnRanks(2, [](int rank) {
    const World world = Join();
    auto net = std::make_shared<SmallNet>();
    DistributedDataParallel ddp(net, world);
    ddp.backward(ddp(BatchOf(0, rank).x).sum());
    const double before = FlatGrad(*net).norm().item<double>();
    EXPECT_NEAR(ddp.clip_grad_norm(0.5), before, 1e-4);
    EXPECT_NEAR(FlatGrad(*net).norm().item<double>(), 0.5, 1e-4);
    const at::Tensor both = world.all_gather(FlatGrad(*net));
    EXPECT_TRUE(both[0].equal(both[1]));
    const auto skip = ddp.no_sync();
    EXPECT_THROW(ddp.clip_grad_norm(0.5), Error);
    return 0;
  }));
}

}  // namespace
}  // namespace muster
