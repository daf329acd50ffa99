#ifndef MUSTER_TESTS_WORKER_SDK_RUN_FIXTURE_H_
#define MUSTER_TESTS_WORKER_SDK_RUN_FIXTURE_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <utility>

#include "tests/worker_sdk/nets.h"

namespace muster {

namespace fs = std::filesystem;

class RunTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("run." + std::to_string(getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    file_ = folder_ / "run.ckpt";
  }
  void TearDown() override { fs::remove_all(folder_); }
  CheckpointOptions InFile() const { return CheckpointOptions().file(file_); }
  fs::path folder_, file_;
};

// A training with random numbers in it.
struct Training {
  Training(const World& its_world, CheckpointOptions options)
      : world(its_world),
        net(std::make_shared<SmallNet>()),
        ddp(net, world),
        optimizer(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9)),
        sampler(64, world),
        scaler(world, GradScalerOptions().init_scale(8).growth_interval(3)),
        state(world, std::move(options)) {
    state.add("net", *net).add("optimizer", optimizer).add("sampler", sampler);
    state.add("scaler", scaler).add("step", step);
  }
  void Step() {
    const Batch batch = BatchOf(step, world.rank());
    ddp.zero_grad();
    const at::Tensor loss = Loss(ddp(batch.x + at::rand_like(batch.x)), batch.y);
    ddp.backward(scaler.scale(loss));
    scaler.step(optimizer);
    scaler.update();
    sampler.consumed(2);
    ++step;
  }
  void TrainTo(int64_t end) {
    while (step < end) {
      Step();
      state.commit();
    }
  }
  World world;
  std::shared_ptr<SmallNet> net;
  DistributedDataParallel<SmallNet> ddp;
  torch::optim::SGD optimizer;
  DistributedSampler sampler;
  GradScaler scaler;
  State state;
  int64_t step = 0;
};

// Collective: the step of what is on disk.
inline int64_t StepIn(const World& world, CheckpointOptions options) {
  Training resumed(world, std::move(options));
  EXPECT_TRUE(resumed.state.load());
  return resumed.step;
}

// Where it ends if nothing happens.
inline at::Tensor Uninterrupted(const World& world, int64_t steps) {
  world.seed(1);
  Training whole(world, {});
  whole.TrainTo(steps);
  return Flat(*whole.net);
}

}  // namespace muster

#endif  // MUSTER_TESTS_WORKER_SDK_RUN_FIXTURE_H_
