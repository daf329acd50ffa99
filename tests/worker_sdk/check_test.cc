#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/nn/modules/batchnorm.h>

#include "tests/worker_sdk/nets.h"
#include "tests/worker_sdk/ranks.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const Variables kOn = {{"MUSTER_CHECK", "1"}, {"MUSTER_CHECK_EVERY", "3"}};

// What the ranks wrote to stderr.
std::string WrittenWith(const Variables& variables, int ranks,
                        const std::function<void(int rank)>& body) {
  testing::internal::CaptureStderr();
  const auto run = [&](int rank) { return body(rank), 0; };
  const bool ended_well = OnRanks(ranks, run, variables);
  const std::string written = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(ended_well) << written;
  return written;
}

std::string WrittenBy(int ranks, const std::function<void(int rank)>& body) {
  return WrittenWith(kOn, ranks, body);
}

template <class F>
std::string MismatchOf(F&& training, const std::string& parameter = "") {
  try {
    training();
    ADD_FAILURE() << "no error";
  } catch (const Mismatch& error) {
    EXPECT_TRUE(error.everywhere);
    EXPECT_EQ(error.parameter, parameter);
    return error.what();
  }
  return "";
}

struct Job {
  World world = Join();
  std::shared_ptr<SmallNet> net = std::make_shared<SmallNet>();
  DistributedDataParallel<SmallNet> ddp{net, world};
};

void Step(DistributedDataParallel<SmallNet>& ddp, int64_t step, int rank) {
  ddp.zero_grad();
  const Batch batch = BatchOf(step, rank);
  ddp.backward(Loss(ddp(batch.x), batch.y));
}

// Two more epochs of a training whose samples are numbers.
void TrainEpochs(DistributedDataParallel<SmallNet>& ddp, DistributedSampler& sampler,
                 size_t first) {
  torch::optim::SGD optimizer(ddp->parameters(), torch::optim::SGDOptions(0.1));
  for (size_t epoch = first; epoch < first + 2; ++epoch) {
    sampler.set_epoch(epoch);
    sampler.reset();
    while (const auto indices = sampler.next(4)) {
      std::vector<at::Tensor> rows;
      for (const size_t index : *indices) rows.push_back(BatchOf(static_cast<int64_t>(index), 0).x);
      ddp.zero_grad();
      ddp.backward(ddp(at::cat(rows)).square().mean());
      optimizer.step();
      sampler.consumed(indices->size());
    }
  }
}

// ── What is right ───────────────────────────────────────────────────────────────────────────────

TEST(Check, ARightJobIsToldSoOnce) {
  const std::string written = WrittenBy(3, [](int) {
    Job job;
    DistributedSampler sampler(22, job.world);  // 22 over 3: two indices are handed out again
    TrainEpochs(job.ddp, sampler, 0);
    TrainEpochs(job.ddp, sampler, 2);
  });
  EXPECT_THAT(
      written,
      AllOf(HasSubstr("check of 3 ranks, every 3 steps\ndata split        epoch 1: 12 of 22 "),
            HasSubstr("none twice"), HasSubstr("\nparameters        equal bit"),
            HasSubstr("\ngradients         fc1.weight in step 2: max difference")));
  EXPECT_EQ(written.find("data split"), written.rfind("data split")) << written;
  EXPECT_THAT(written, Not(HasSubstr("?")));
}

TEST(Check, IsOffUnlessAskedFor) {
  const std::string written = WrittenWith({}, 2, [](int rank) {
    Job job;
    for (int64_t step = 0; step < 4; ++step) Step(job.ddp, step, rank);
    if (rank == 1) job.net->fc1->weight.detach().add_(1);
    for (int64_t step = 4; step < 8; ++step) Step(job.ddp, step, rank);
  });
  EXPECT_THAT(written, Not(HasSubstr("check")));
}

TEST(Check, GoesOnAfterARestartInTheMiddleOfAnEpochWithOtherRanks) {
  const std::string written = WrittenBy(2, [](int) {
    Job job;
    DistributedSampler before(50, 0, 3), sampler(50, job.world);
    before.set_epoch(4);
    before.consumed(5);
    sampler.restore(before.snapshot());
    TrainEpochs(job.ddp, sampler, 4);
  });
  EXPECT_THAT(written, HasSubstr("none twice"));
}

TEST(Check, RanksThatGoOnFromDifferentPlacesWithoutSharingAnIndexAreNoMistake) {
  const std::string written = WrittenBy(2, [](int rank) {
    Job job;
    DistributedSampler sampler(64, job.world);
    for (int64_t step = 0; step < 8; ++step) {
      sampler.next(rank == 0 ? 2 : 4);
      if (step == 5) sampler.set_epoch(1);
      Step(job.ddp, step, rank);
    }
  });
  EXPECT_THAT(written, HasSubstr("gradients"));
}

struct Normed : SmallNet {
  at::Tensor forward(const at::Tensor& x) { return SmallNet::forward(bn(x)); }
  torch::nn::BatchNorm1d bn = register_module("bn", torch::nn::BatchNorm1d(6));
};

// Uses one of two layers.
struct Branches : SmallNet {
  at::Tensor forward(const at::Tensor& x, bool first) { return first ? a(x) : b(x); }
  torch::nn::Linear a = register_module("a", torch::nn::Linear(6, 2));
  torch::nn::Linear b = register_module("b", torch::nn::Linear(6, 2));
};

TEST(Check, RaisesNoFalseAlarm) {
  const std::string written = WrittenBy(2, [](int rank) {
    const World world = Join();
    for (const DDPOptions& options :
         {DDPOptions().static_graph(true), DDPOptions().gradient_as_bucket_view(true),
          DDPOptions().bucket_cap_mb(1e-5), DDPOptions().find_unused_parameters(true),
          DDPOptions().comm_hook(hooks::allreduce()), DDPOptions().comm_hook(hooks::fp16()),
          DDPOptions().comm_hook(hooks::bf16()), DDPOptions().sync_batch_norm(true)}) {
      auto net = std::make_shared<Normed>();
      DistributedDataParallel ddp(net, world, options);
      torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.1));
      GradScaler scaler(world, GradScalerOptions().init_scale(1024));
      for (int64_t step = 0; step < 8; ++step) {
        ddp.zero_grad(step % 2 == 0);
        const Batch batch = BatchOf(step, rank);
        const at::Tensor loss = scaler.scale(Loss(ddp(batch.x), batch.y));
        step % 3 == 0 ? loss.backward() : ddp.backward(loss);
        scaler.step(optimizer);
        scaler.update();
      }
    }
  });
  EXPECT_THAT(written, AllOf(HasSubstr("gradients"), Not(HasSubstr("not the mean"))));
}

TEST(Check, UnderstandsAccumulationJoinAndBranches) {
  const std::string written = WrittenBy(2, [](int rank) {
    Job job;
    for (int64_t step = 0; step < 12; ++step) {  // gradients pile up: zeroed every fourth step
      const auto skip = job.ddp.no_sync(step % 4 != 3);
      if (step % 4 == 0) job.ddp.zero_grad();
      const Batch batch = BatchOf(step, rank);
      job.ddp.backward(Loss(job.ddp(batch.x), batch.y));
    }
    job.ddp.join([&] {
      for (int64_t step = 0; step < 3 + 4 * rank; ++step) Step(job.ddp, step, rank);
    });
    for (int64_t step = 0; step < 4; ++step) Step(job.ddp, step, rank);

    auto branches = std::make_shared<Branches>();
    DistributedDataParallel both(branches, job.world, DDPOptions().find_unused_parameters(true));
    for (int64_t step = 0; step < 20; ++step) {
      both.zero_grad();
      both.backward(both(BatchOf(step, rank).x, (step + rank) % 2 == 0).sum());
    }
  });
  EXPECT_THAT(written, HasSubstr("gradients         fc1.weight in step 2: max difference"));
  EXPECT_THAT(written, HasSubstr("gradients         none came that could be compared"));
}

TEST(Check, AnInfiniteGradientIsNotJudged) {
  const std::string written = WrittenBy(2, [](int rank) {
    Job job;
    for (int64_t step = 0; step < 6; ++step) {
      job.ddp.zero_grad();
      job.ddp.backward(job.ddp(BatchOf(step, rank).x).sum() * (step == 1 ? INFINITY : 1.0));
    }
  });
  EXPECT_THAT(written, HasSubstr("gradients         fc2.weight in step 3: max difference"));
}

// ── The same batch ──────────────────────────────────────────────────────────────────────────────

std::string WarningOf(int ranks, const std::function<int64_t(int)>& batch_of, bool training = true,
                      bool warn = true) {
  return WrittenWith({}, ranks, [&](int rank) {
    at::set_num_threads(1);
    const World world = init(InitOptions().check(CheckOptions().warn_of_same_batch(warn)));
    auto net = std::make_shared<SmallNet>();
    net->train(training);
    DistributedDataParallel ddp(net, world);
    for (int64_t step = 0; step < 3; ++step) {
      ddp.backward(ddp(BatchOf(step, batch_of(rank)).x).sum());
    }
  });
}

TEST(Check, RanksThatBeginWithTheSameBatchAreWarnedOnce) {
  const std::string all = WarningOf(3, [](int) { return 5; });
  EXPECT_THAT(all, HasSubstr(": all 3 ranks began with the same batch: is the data split?"));
  EXPECT_EQ(all.find("same batch"), all.rfind("same batch")) << all;
  EXPECT_THAT(WarningOf(3, [](int rank) { return rank % 2; }),
              HasSubstr(": ranks 0, 2 began with the same batch"));
}

TEST(Check, DifferentBatchesEvaluationAndWhoMeansItAreNotWarned) {
  const auto quiet = Not(HasSubstr("same batch"));
  EXPECT_THAT(WarningOf(2, [](int rank) { return rank; }), quiet);
  EXPECT_THAT(WarningOf(
                  2, [](int) { return 5; }, /*training=*/false),
              quiet);
  EXPECT_THAT(WarningOf(
                  2, [](int) { return 5; }, true, /*warn=*/false),
              quiet);
}

struct ManyInputs : SmallNet {
  at::Tensor forward(const std::vector<at::Tensor>& x, std::string, std::pair<int, at::Tensor> y) {
    return SmallNet::forward(x[0] + y.second);
  }
};

TEST(Check, TensorsWithinOtherInputsAreSeen) {
  const auto warning = [](bool same) {
    return WrittenWith({}, 2, [same](int rank) {
      const World world = Join();
      DistributedDataParallel ddp(std::make_shared<ManyInputs>(), world);
      const std::vector<at::Tensor> x = {BatchOf(0, 0).x};
      ddp(x, std::string("text"), std::make_pair(rank, BatchOf(0, same ? 0 : rank).x));
    });
  };
  EXPECT_THAT(warning(true), HasSubstr("same batch"));
  EXPECT_THAT(warning(false), Not(HasSubstr("same batch")));
}

// ── What is wrong ───────────────────────────────────────────────────────────────────────────────

std::string SplitError(const std::function<DistributedSampler(const World&)>& sampler_of) {
  return WrittenBy(3, [&](int rank) {
    Job job;
    DistributedSampler sampler = sampler_of(job.world);
    const std::string text = MismatchOf([&] {
      sampler.next(4);
      Step(job.ddp, 0, rank);
    });
    if (rank == 0) std::fprintf(stderr, "%s", text.c_str());
  });
}

TEST(Check, AnIndexThatIsHandedOutTwiceIsNamedInTheFirstStep) {
  EXPECT_THAT(SplitError([](const World& world) {
                return DistributedSampler(30, world.rank() / 2, 3, SamplerOptions().shuffle(false));
              }),
              HasSubstr("the data split is wrong: index 0 was handed out twice in one epoch, to "
                        "ranks 0, 1: the samplers of ranks 0 and 1 are both made for rank 0;"));
  EXPECT_THAT(SplitError([](const World& world) {
                return DistributedSampler(12, world, SamplerOptions().seed(world.rank() == 2));
              }),
              AllOf(HasSubstr("the data split is wrong: index "),
                    HasSubstr("the sampler's seed is 0 on rank 0 and 1 on rank 2")));
  EXPECT_THAT(SplitError([](const World& world) {
                DistributedSampler sampler(12, world);
                if (world.rank() == 1) sampler.set_epoch(7);
                return sampler;
              }),
              HasSubstr("the sampler's epoch is 0 on rank 0 and 7 on rank 1"));
}

TEST(Check, AParameterThatStrayedIsNamed) {
  WrittenBy(3, [](int rank) {
    Job job;
    for (int64_t step = 0; step < 2; ++step) Step(job.ddp, step, rank);
    if (rank == 2) job.net->fc2->bias.detach()[1].add_(1e-7);
    EXPECT_THAT(MismatchOf([&] { Step(job.ddp, 2, rank); }, "fc2.bias"),
                HasSubstr("parameter fc2.bias is not on rank 2 what it is on rank 0"));
  });
}

// Runs `meddle` after the gradients are averaged, before anybody looks.
struct Meddle : torch::autograd::Function<Meddle> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& loss) {
    return loss.clone();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 torch::autograd::variable_list gradients) {
    auto& engine = torch::autograd::Engine::get_default_engine();
    engine.queue_callback([&engine] { engine.queue_callback([] { meddle(); }); });
    return gradients;
  }
  static inline std::function<void()> meddle;
};

std::string GradientError(const std::function<void(int rank, const at::Tensor&)>& meddle) {
  return WrittenBy(2, [&](int rank) {
    Job job;
    Meddle::meddle = [&] { meddle(rank, job.net->fc1->weight.grad()); };
    const std::string text = MismatchOf(
        [&] {
          for (int64_t step = 0; step < 3; ++step) {
            job.ddp.zero_grad();
            const Batch batch = BatchOf(step, rank);
            job.ddp.backward(Meddle::apply(Loss(job.ddp(batch.x), batch.y)));
          }
        },
        "fc1.weight");
    if (rank == 0) std::fprintf(stderr, "%s", text.c_str());
  });
}

TEST(Check, GradientsThatAreNotTheMeanAreNamed) {
  EXPECT_THAT(
      GradientError([](int, const at::Tensor& gradient) { gradient.mul_(1.001); }),
      HasSubstr("gradient of parameter fc1.weight in step 2 is not the mean of the ranks'"));
  EXPECT_THAT(GradientError([](int rank, const at::Tensor& gradient) { gradient.mul_(1 + rank); }),
              HasSubstr("gradient of parameter fc1.weight in step 2 is not on rank 1 what"));
}

TEST(Check, AHookOfOnesOwnThatForgetsToDivideIsAskedAbout) {
  const std::string written = WrittenBy(2, [](int rank) {
    const World world = Join();
    const CommHook sums = {"sums", [](const World& group, Bucket& bucket) {
                             return group.all_reduce_async(bucket.gradients());
                           }};
    DistributedDataParallel ddp(std::make_shared<SmallNet>(), world, DDPOptions().comm_hook(sums));
    for (int64_t step = 0; step < 4; ++step) Step(ddp, step, rank);
  });
  EXPECT_THAT(written, HasSubstr("is the hook 'sums' meant to do that?"));
}

TEST(Check, ARankThatLeavesIsAPeerLostAsElsewhere) {
  WrittenBy(2, [](int rank) {
    Job job;
    if (rank == 1) return job.world.abort("tired");
    try {
      Step(job.ddp, 0, rank);
      ADD_FAILURE() << "no error";
    } catch (const PeerLost& error) {
      EXPECT_THAT(error.what(), HasSubstr("tired"));
    }
  });
}

TEST(Check, RanksThatDisagreeLearnItFromInit) {
  const std::string written = WrittenWith({}, 2, [](int rank) {
    if (rank == 1) setenv("MUSTER_CHECK", "1", 1);
    try {
      init(InitOptions().init_timeout(std::chrono::seconds(2)));
      ADD_FAILURE() << "no error";
    } catch (const Mismatch& error) {
      std::fprintf(stderr, "%s\n", error.what());
    } catch (const Error&) {
      // The other one has said it and is gone.
    }
  });
  EXPECT_THAT(written, HasSubstr(" has WORLD_SIZE=2"));
  EXPECT_THAT(written, HasSubstr("2 with a check every 100 steps"));
}

}  // namespace
}  // namespace muster
