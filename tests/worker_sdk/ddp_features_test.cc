#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/embedding.h>

#include "tests/worker_sdk/nets.h"
#include "tests/worker_sdk/ranks.h"

namespace muster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using torch::nn::Linear;
using torch::optim::SGD;
using torch::optim::SGDOptions;

// ── Communication hooks ─────────────────────────────────────────────────────────────────────────

at::Tensor GradientWith(const World& world, const DDPOptions& options) {
  auto net = std::make_shared<SmallNet>();
  DistributedDataParallel ddp(net, world, options);
  for (int64_t step = 0; step < 3; ++step) {
    ddp.zero_grad();
    const Batch batch = BatchOf(step, world.rank());
    ddp.backward(Loss(ddp(batch.x), batch.y));
  }
  const at::Tensor all = world.all_gather(FlatGrad(*net));
  EXPECT_TRUE(all[0].equal(all[world.size() - 1]));
  return FlatGrad(*net);
}

TEST(DdpHooks, GiveTheAverageAsPreciselyAsTheirTypeCan) {
  EXPECT_TRUE(OnRanks(3, [](int) {
    const World world = Join();
    const at::Tensor exact = GradientWith(world, {});
    EXPECT_LT(Distance(exact, GradientWith(world, DDPOptions().comm_hook(hooks::allreduce()))),
              1e-7);
    for (const bool view : {false, true}) {
      const auto options = DDPOptions().gradient_as_bucket_view(view);
      const double half =
          Distance(exact, GradientWith(world, DDPOptions(options).comm_hook(hooks::fp16())));
      EXPECT_GT(half, 0);
      EXPECT_LT(half, 1e-3);
      const double brain =
          Distance(exact, GradientWith(world, DDPOptions(options).comm_hook(hooks::bf16())));
      EXPECT_GT(brain, half);
      EXPECT_LT(brain, 1e-2);
    }
    return 0;
  }));
}

TEST(DdpHooks, HalfPrecisionDividesBeforeItAddsUp) {
  EXPECT_TRUE(OnRanks(4, [](int) {
    const World world = Join();
    auto net = std::make_shared<SmallNet>();
    DistributedDataParallel ddp(net, world, DDPOptions().comm_hook(hooks::fp16()));
    ddp.backward(ddp(at::ones({1, 6})).sum() * 40000);  // four of them are more than 65504
    EXPECT_EQ(net->fc2->bias.grad().max().item<float>(), 40000);
    return 0;
  }));
}

TEST(DdpHooks, AUsersHookSeesEveryBucketOnceAndItsResultIsTaken) {
  EXPECT_TRUE(OnRanks(2, [](int rank) {
    const World world = Join();
    auto net = std::make_shared<SmallNet>();
    int64_t numbers = 0, buckets = 0, last = 0;
    const CommHook sevens = {"sevens", [&](const World&, Bucket& bucket) {
                               EXPECT_EQ(bucket.index(), static_cast<size_t>(buckets));
                               EXPECT_EQ(bucket.per_parameter().size(), bucket.parameters().size());
                               numbers += bucket.gradients().numel();
                               ++buckets;
                               last += bucket.last() ? 1 : 0;
                               bucket.gradients().fill_(7);
                               return Pending();
                             }};
    DistributedDataParallel ddp(net, world, DDPOptions().comm_hook(sevens).bucket_cap_mb(1e-5));
    ddp.backward(ddp(BatchOf(0, rank).x).sum());
    EXPECT_EQ(buckets, 1);
    ddp(BatchOf(1, rank).x);
    buckets = numbers = last = 0;
    ddp.backward(ddp(BatchOf(1, rank).x).sum());
    EXPECT_EQ(buckets, static_cast<int64_t>(ddp.stats().bucket_bytes.size()));
    EXPECT_GT(buckets, 1);
    EXPECT_EQ(last, 1);
    EXPECT_EQ(numbers, Flat(*net).numel());
    return 0;
  }));
}

TEST(DdpHooks, AnErrorInAHookComesOutOfBackward) {
  EXPECT_TRUE(OnRanks(1, [](int) {
    const World world = Join();
    auto net = std::make_shared<SmallNet>();
    const CommHook broken = {"broken", [](const World&, Bucket&) -> Pending {
                               throw std::runtime_error("the hook broke");
                             }};
    DistributedDataParallel ddp(net, world, DDPOptions().comm_hook(broken));
    const at::Tensor loss = ddp(BatchOf(0, 0).x).sum();
    try {
      ddp.backward(loss);
      ADD_FAILURE() << "no error";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "the hook broke");
    }
    return 0;
  }));
}

// ── Uneven numbers of batches ───────────────────────────────────────────────────────────────────

constexpr int64_t kBatches[] = {5, 7, 9};

// In one process: the sum of the live ranks' gradients, divided as `live_only` says.
at::Tensor TrainUnevenAlone(bool live_only) {
  SmallNet net;
  SGD optimizer(net.parameters(), SGDOptions(0.1));
  for (int64_t step = 0; step < 9; ++step) {
    optimizer.zero_grad();
    int64_t live = 0;
    for (int64_t rank = 0; rank < 3; ++rank) {
      if (step >= kBatches[rank]) continue;
      const Batch batch = BatchOf(step, rank);
      Loss(net.forward(batch.x), batch.y).backward();
      ++live;
    }
    for (at::Tensor& parameter : net.parameters()) {
      parameter.mutable_grad().div_(live_only ? live : 3);
    }
    optimizer.step();
  }
  return Flat(net);
}

TEST(DdpJoin, RanksWithFewerBatchesEndWithTheModelOfTheLast) {
  EXPECT_TRUE(OnRanks(3, [](int rank) {
    const World world = Join();
    const DDPOptions options[] = {DDPOptions(), DDPOptions().find_unused_parameters(true),
                                  DDPOptions().gradient_as_bucket_view(true),
                                  DDPOptions().bucket_cap_mb(1e-5),
                                  DDPOptions().static_graph(true)};
    for (const bool live_only : {false, true}) {
      for (const DDPOptions& option : options) {
        auto net = std::make_shared<SmallNet>();
        DistributedDataParallel ddp(net, world, option);
        SGD optimizer(net->parameters(), SGDOptions(0.1));
        ddp.join(
            [&] {
              for (int64_t step = 0; step < kBatches[rank]; ++step) {
                ddp.zero_grad();
                const Batch batch = BatchOf(step, rank);
                ddp.backward(Loss(ddp(batch.x), batch.y));
                optimizer.step();
              }
            },
            JoinOptions().divide_by_initial_world_size(!live_only));
        EXPECT_LT(Distance(Flat(*net), TrainUnevenAlone(live_only)), 1e-5);
        EXPECT_EQ(ddp.max_parameter_difference(), 0);
        // And it goes on as before.
        ddp.zero_grad();
        ddp.backward(ddp(BatchOf(0, 0).x).sum());
        EXPECT_LT(ddp.max_gradient_difference(net->forward(BatchOf(0, 0).x).sum()), 1e-6);
      }
    }
    return 0;
  }));
}

TEST(DdpJoin, EvaluationAndAccumulationWithinItAreFollowed) {
  EXPECT_TRUE(OnRanks(2, [](int rank) {
    const World world = Join();
    auto net = std::make_shared<SmallNet>();
    net->register_buffer("counter", at::full({1}, rank));
    DistributedDataParallel ddp(net, world);
    ddp.join([&] {
      for (int64_t step = 0; step < 2 + 4 * rank; ++step) {
        {
          const auto skip = ddp.no_sync();
          ddp.backward(ddp(BatchOf(step, rank).x).sum());
        }
        ddp.backward(ddp(BatchOf(step, rank).x).sum());
        const at::NoGradGuard no_grad;
        ddp(BatchOf(step, rank).x);
      }
    });
    EXPECT_EQ(ddp.max_parameter_difference(), 0);
    return 0;
  }));
}

TEST(DdpJoin, UnevenInputsCanBeAnErrorOnEveryRank) {
  EXPECT_TRUE(OnRanks(3, [](int rank) {
    const World world = Join();
    auto net = std::make_shared<SmallNet>();
    DistributedDataParallel ddp(net, world);
    int64_t steps = 0;
    const auto body = [&] {
      for (; steps < (rank == 1 ? 2 : 5); ++steps) ddp.backward(ddp(BatchOf(steps, rank).x).sum());
    };
    try {
      ddp.join(body, JoinOptions().throw_when_uneven(true));
      ADD_FAILURE() << "no error";
    } catch (const UnevenInputs& error) {
      EXPECT_THAT(error.ranks, ElementsAre(1));
      EXPECT_STREQ(error.what(), "rank 1 of 3 ran out of batches before the others");
    }
    EXPECT_EQ(steps, 2);
    EXPECT_THROW(ddp.join([] {}, JoinOptions().throw_when_uneven(rank == 0)), Mismatch);
    return 0;
  }));
}

// ── Modules of other kinds ──────────────────────────────────────────────────────────────────────

struct Words : torch::nn::Module {
  Words() { Fill(*this); }
  at::Tensor forward(const at::Tensor& words) { return fc(table(words).mean(1)); }
  torch::nn::Embedding table = register_module(
      "table", torch::nn::Embedding(torch::nn::EmbeddingOptions(20, 4).sparse(true)));
  Linear fc = register_module("fc", Linear(4, 3));
};

TEST(Ddp, SparseGradientsOfEmbeddingsAreAveraged) {
  const auto words = [](int64_t step, int64_t rank) {
    return (at::arange(12, at::kLong).reshape({4, 3}) * 5 + step + 7 * rank).remainder(20);
  };
  EXPECT_TRUE(OnRanks(2, [&](int rank) {
    const World world = Join();
    for (const bool find_unused : {false, true}) {
      auto net = std::make_shared<Words>();
      DistributedDataParallel ddp(net, world, DDPOptions().find_unused_parameters(find_unused));
      for (int64_t step = 0; step < 3; ++step) {
        ddp.zero_grad();
        ddp.backward(ddp(words(step, rank)).square().mean());
        EXPECT_TRUE(net->table->weight.grad().is_sparse());
        const at::Tensor joined = at::cat({words(step, 0), words(step, 1)});
        EXPECT_LT(ddp.max_gradient_difference(net->forward(joined).square().mean()), 1e-6);
      }
    }
    return 0;
  }));
}

}  // namespace

// A type of the user's, with its visit_tensors beside it.
namespace zoo {

struct Output {
  at::Tensor logits;
  std::map<std::string, std::vector<std::tuple<at::Tensor, std::optional<at::Tensor>>>> more;
  int64_t tokens = 0;
};

template <class F>
void visit_tensors(Output& output, F&& fn) {
  fn(output.logits);
  muster::visit_tensors(output.more, fn);
}

}  // namespace zoo

namespace {

struct Nested : SmallNet {
  std::vector<zoo::Output> forward(const at::Tensor& x) {
    const at::Tensor hidden = fc1(x);
    return {{fc2(at::relu(hidden)), {{"hidden", {{hidden, std::nullopt}, {x, hidden * 2}}}}, 3}};
  }
};

TEST(Ddp, ModulesMayReturnTheirOwnTypesNestedAsTheyLike) {
  EXPECT_TRUE(OnRanks(2, [](int rank) {
    const World world = Join();
    for (const bool fixed : {false, true}) {
      auto net = std::make_shared<Nested>();
      DistributedDataParallel ddp(net, world,
                                  DDPOptions().find_unused_parameters(!fixed).static_graph(fixed));
      for (int64_t step = 0; step < 3; ++step) {
        ddp.zero_grad();
        auto output = ddp(BatchOf(step, rank).x);
        int64_t tensors = 0;
        visit_tensors(output, [&](const at::Tensor&) { ++tensors; });
        EXPECT_EQ(tensors, 4);
        ddp.backward(output[0].logits.sum());
        auto joined = net->forward(JoinedBatch(step, 2).x);
        EXPECT_LT(ddp.max_gradient_difference(joined[0].logits.sum() / 2), 1e-5);
      }
    }
    return 0;
  }));
}

TEST(Ddp, SeveralForwardsMayGoIntoOneBackward) {
  EXPECT_TRUE(OnRanks(2, [](int rank) {
    const World world = Join();
    for (const bool find_unused : {false, true}) {
      auto net = std::make_shared<SmallNet>();
      DistributedDataParallel ddp(net, world, DDPOptions().find_unused_parameters(find_unused));
      for (int64_t step = 0; step < 3; ++step) {
        ddp.zero_grad();
        const Batch a = BatchOf(2 * step, rank), b = BatchOf(2 * step + 1, rank);
        const at::Tensor first = Loss(ddp(a.x), a.y);
        ddp.backward(first + Loss(ddp(b.x), b.y));
        const Batch all_a = JoinedBatch(2 * step, 2), all_b = JoinedBatch(2 * step + 1, 2);
        EXPECT_LT(ddp.max_gradient_difference(Loss(net->forward(all_a.x), all_a.y) +
                                              Loss(net->forward(all_b.x), all_b.y)),
                  1e-6);
      }
    }
    return 0;
  }));
}

// ── What is wrong on one rank only ──────────────────────────────────────────────────────────────

TEST(Ddp, WhatOneRankCannotWrapIsAnErrorOnEveryRank) {
  EXPECT_TRUE(OnRanks(3, [](int rank) {
    const World world = Join();
    const auto refused = [&](const std::shared_ptr<SmallNet>& net, const DDPOptions& options) {
      try {
        DistributedDataParallel ddp(net, world, options);
        ADD_FAILURE() << "no error";
      } catch (const Error& error) {
        return std::string(error.what());
      }
      return std::string();
    };
    auto frozen = std::make_shared<SmallNet>();
    for (at::Tensor& parameter : frozen->parameters()) parameter.requires_grad_(rank != 1);
    EXPECT_THAT(refused(frozen, {}),
                HasSubstr("on rank 1, the module has no parameter that requires a gradient"));
    auto partly = std::make_shared<SmallNet>();
    partly->fc2->bias.requires_grad_(rank != 2);
    EXPECT_THAT(refused(partly, {}),
                HasSubstr("fc2.bias is [3] Float on rank 0, rank 2 has [3] Float frozen"));
    EXPECT_THAT(refused(std::make_shared<SmallNet>(), DDPOptions().ignore({"fc9.bias"})),
                HasSubstr("no parameter or buffer 'fc9.bias' to ignore"));
    const auto hook = rank == 0 ? hooks::fp16() : hooks::bf16();
    EXPECT_THAT(refused(std::make_shared<SmallNet>(), DDPOptions().comm_hook(hook)),
                HasSubstr("option comm_hook is 'fp16' on rank 0, rank 1 has 'bf16'"));
    return 0;
  }));
}

TEST(Ddp, AnErrorInOneRanksForwardReachesTheOthersWithItsCause) {
  struct Picky : SmallNet {
    at::Tensor forward(const at::Tensor& x) {
      if (x.size(0) == 1) throw std::runtime_error("a batch of one");
      return SmallNet::forward(x);
    }
  };
  EXPECT_TRUE(OnRanks(3, [](int rank) {
    const World world = Join();
    auto net = std::make_shared<Picky>();
    DistributedDataParallel ddp(net, world);
    ddp.backward(ddp(BatchOf(0, rank).x).sum());
    const at::Tensor x = BatchOf(1, rank).x;
    try {
      ddp.backward(ddp(rank == 2 ? x.slice(0, 0, 1) : x).sum());
      ADD_FAILURE() << "no error";
    } catch (const PeerLost& error) {
      EXPECT_NE(rank, 2);
      EXPECT_THAT(error.ranks, ElementsAre(2));
      EXPECT_THAT(error.what(), HasSubstr("rank 2 left: a batch of one"));
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(rank, 2);
      EXPECT_STREQ(error.what(), "a batch of one");
    }
    return 0;
  }));
}

TEST(Ddp, StatsTellWhatIsSentAndHowLongItTakes) {
  EXPECT_TRUE(OnRanks(2, [](int rank) {
    const World world = Join();
    auto net = std::make_shared<SmallNet>();
    DistributedDataParallel ddp(net, world, DDPOptions().bucket_cap_mb(1e-5));
    EXPECT_FALSE(ddp.stats().buckets_are_final);
    EXPECT_EQ(ddp.stats().bucket_bytes.size(), 1u);
    for (int64_t step = 0; step < 4; ++step) ddp.backward(ddp(BatchOf(step, rank).x).sum());
    const Stats stats = ddp.stats();
    EXPECT_TRUE(stats.buckets_are_final);
    EXPECT_EQ(stats.bucket_bytes.size(), 4u);
    EXPECT_GT(stats.forward_ms, 0);
    EXPECT_GT(stats.backward_ms, 0);
    EXPECT_GT(stats.communication_ms, 0);
    EXPECT_LE(stats.overlap_ms, stats.backward_ms);
    return 0;
  }));
}

}  // namespace
}  // namespace muster
