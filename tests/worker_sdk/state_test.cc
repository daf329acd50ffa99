#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>

#include <fstream>

#include "tests/worker_sdk/nets.h"
#include "tests/worker_sdk/ranks.h"

namespace muster {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using torch::optim::SGD;
using torch::optim::SGDOptions;

class StateTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("state." + std::to_string(getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    file_ = folder_ / "run.ckpt";
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path folder_, file_;
};

// A run that uses all that State keeps, random numbers included.
struct Training {
  explicit Training(const World& world)
      : net(std::make_shared<SmallNet>()),
        ddp(net, world),
        optimizer(net->parameters(), SGDOptions(0.1).momentum(0.9)),
        sampler(64, world),
        state(world) {
    state.add("net", *net).add("optimizer", optimizer).add("sampler", sampler).add("step", step);
    state.add("rate", rate).add("flag", flag);
  }
  void Train(int64_t steps, int rank) {
    for (int64_t end = step + steps; step < end; ++step) {
      const Batch batch = BatchOf(step, rank);
      ddp.zero_grad();
      ddp.backward(Loss(ddp(batch.x + at::rand_like(batch.x)), batch.y));
      optimizer.step();
      sampler.consumed(2);
    }
  }
  std::shared_ptr<SmallNet> net;
  DistributedDataParallel<SmallNet> ddp;
  SGD optimizer;
  DistributedSampler sampler;
  State state;
  int64_t step = 0;
  double rate = 0.5;
  bool flag = false;
};

TEST_F(StateTest, AResumedRunEndsBitForBitAsAnUninterruptedOne) {
  EXPECT_TRUE(OnRanks(2, [&](int rank) {
    const World world = init();
    world.seed(1);
    Training whole(world);
    whole.Train(3, rank);
    whole.rate = 0.25;
    whole.flag = true;
    whole.state.save(file_);
    whole.Train(4, rank);
    const at::Tensor next = at::rand({2});

    world.seed(99);
    Training resumed(world);
    const Loaded loaded = resumed.state.load(file_);
    EXPECT_TRUE(loaded);
    EXPECT_EQ(loaded.file, file_);
    EXPECT_EQ(loaded.note, "");
    EXPECT_EQ(resumed.step, 3);
    EXPECT_EQ(resumed.rate, 0.25);
    EXPECT_TRUE(resumed.flag);
    resumed.Train(4, rank);
    EXPECT_TRUE(Flat(*resumed.net).equal(Flat(*whole.net)));
    EXPECT_EQ(resumed.sampler.position(), whole.sampler.position());
    EXPECT_TRUE(at::rand({2}).equal(next)) << "the random numbers go on, too";
    return 0;
  }));
}

TEST_F(StateTest, NothingThereIsNoErrorAndChangesNothing) {
  EXPECT_TRUE(OnRanks(2, [&](int) {
    const World world = init();
    Training run(world);
    EXPECT_FALSE(run.state.load(file_));
    EXPECT_EQ(run.step, 0);
    return 0;
  }));
}

TEST_F(StateTest, ATruncatedFileFallsBackToTheOneBeforeOnEveryRank) {
  EXPECT_TRUE(OnRanks(2, [&](int rank) {
    const World world = init();
    Training run(world);
    for (int64_t i = 1; i <= 2; ++i) {
      run.step = i;
      run.state.save(file_);
    }
    if (rank == 0) fs::resize_file(file_, fs::file_size(file_) / 2);
    const Loaded loaded = run.state.load(file_);
    EXPECT_EQ(run.step, 1);
    EXPECT_THAT(loaded.note, HasSubstr("ends at byte"));
    if (rank == 0) fs::resize_file(loaded.file, 100);
    world.barrier();
    EXPECT_THROW(run.state.load(file_), CheckpointCorrupt);
    EXPECT_EQ(run.step, 1);
    return 0;
  }));
}

TEST_F(StateTest, ACheckpointOfAnotherProgramIsRefusedByNameAndChangesNothing) {
  EXPECT_TRUE(OnRanks(2, [&](int rank) {
    const World world = init();
    Training run(world);
    run.step = 5;
    run.state.save(file_);
    const auto refused = [&](State& state) {
      try {
        state.load(file_);
        ADD_FAILURE() << "no error";
      } catch (const CheckpointError& error) {
        return std::string(error.what());
      }
      return std::string();
    };
    const std::string misfit = "the checkpoint " + file_.string() + " does not fit this program: ";
    int64_t step = 0;
    State fewer(world);
    fewer.add("step", step);
    EXPECT_EQ(refused(fewer), misfit +
                                  "it has net, optimizer, sampler, rate, flag, which this "
                                  "program does not have");
    torch::nn::Linear other(3, 3);
    State others(world);
    others.add("net", *other).add("scaler", step);
    EXPECT_EQ(refused(others), misfit +
                                   "it has optimizer, sampler, step, rate, flag, which this "
                                   "program does not have, and lacks scaler, which this "
                                   "program has");
    // Different on one rank only: no rank may go on.
    DistributedSampler sampler(rank == 1 ? 65 : 64, world);
    State uneven(world);
    SGD optimizer(run.net->parameters(), SGDOptions(0.1));
    double rate = 0;
    bool flag = false;
    uneven.add("net", *run.net).add("optimizer", optimizer).add("sampler", sampler);
    uneven.add("step", step).add("rate", rate).add("flag", flag);
    EXPECT_THAT(refused(uneven), HasSubstr(rank == 1 ? "data set of size 64, now it has 65"
                                                     : "rank 1 cannot apply the checkpoint"));
    EXPECT_EQ(step, 0);
    EXPECT_THROW(uneven.add("net", step), Error);
    return 0;
  }));
}

TEST_F(StateTest, AModelOfAnotherShapeIsRefusedByTheTensorsThatOnlyOneOfTheTwoHas) {
  EXPECT_TRUE(OnRanks(1, [&](int) {
    const World world = init();
    using torch::nn::BatchNorm1d, torch::nn::Linear, torch::nn::Sequential;
    const auto problem = [&](const Sequential& saved, const Sequential& own) -> std::string {
      State(world).add("net", *saved.ptr()).save(file_);
      try {
        State(world).add("net", *own.ptr()).load(file_);
      } catch (const CheckpointError& error) {
        return error.what();
      }
      return "";
    };
    const Sequential plain(Linear(2, 2));
    const Sequential normed(Linear(2, 2), BatchNorm1d(2));
    const std::string misfit =
        "the checkpoint " + file_.string() + " does not fit this program: net: ";
    const std::string norm =
        "1.weight, 1.bias, 1.running_mean, 1.running_var, "
        "1.num_batches_tracked, which this program ";
    EXPECT_EQ(problem(plain, plain), "");
    EXPECT_EQ(problem(normed, plain), misfit + "it has " + norm + "does not have");
    EXPECT_EQ(problem(plain, normed), misfit + "it lacks " + norm + "has");
    EXPECT_EQ(problem(Sequential(Linear(3, 2)), plain),
              misfit + "0.weight is Float [2, 2] in the program, Float [2, 3] in the checkpoint");
    return 0;
  }));
}

TEST_F(StateTest, ASaveByAPastGenerationIsRefusedOnEveryRank) {
  const auto save = [&](int) {
    const World world = init();
    int64_t step = 0;
    State state(world);
    state.add("step", step);
    state.save(file_);
    return 0;
  };
  EXPECT_TRUE(OnRanks(2, save, {{"MUSTER_GENERATION", "4"}}));
  EXPECT_TRUE(OnRanks(2,
                      [&](int rank) {
                        EXPECT_THROW(save(rank), StaleGeneration);
                        return 0;
                      },
                      {{"MUSTER_GENERATION", "3"}}));
}

TEST_F(StateTest, AFolderThatCannotBeWrittenIsAnErrorOnEveryRank) {
  EXPECT_TRUE(OnRanks(2, [&](int) {
    const World world = init();
    State state(world);
    EXPECT_THROW(state.save("/proc/nowhere/run.ckpt"), CheckpointError);
    world.barrier();
    return 0;
  }));
}

TEST_F(StateTest, MoreRanksGoOnFromTheSameFile) {
  EXPECT_TRUE(OnRanks(1, [&](int) {
    const World world = init();
    Training run(world);
    run.Train(2, 0);
    run.state.save(file_);
    return 0;
  }));
  EXPECT_TRUE(OnRanks(3, [&](int rank) {
    const World world = init();
    Training run(world);
    EXPECT_TRUE(run.state.load(file_));
    EXPECT_EQ(run.step, 2);
    EXPECT_EQ(run.sampler.position(), 4u);
    EXPECT_EQ(run.sampler.remaining(), 20u);
    run.Train(1, rank);
    EXPECT_EQ(run.ddp.max_parameter_difference(), 0);
    return 0;
  }));
}

}  // namespace
}  // namespace muster
