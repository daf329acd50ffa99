// The SDK over NCCL. Needs a GPU, libmuster_nccl.so (MUSTER_NCCL_LIBRARY) and NVIDIA's libraries:
// tests/gpu/run.sh sees to that. Nothing here uses LibTorch before init(): it looks for CUDA once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "tests/worker_sdk/fake_agent.h"
#include "tests/worker_sdk/nets.h"
#include "tests/worker_sdk/ranks.h"

namespace muster {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

constexpr int64_t kSteps = 12;

World JoinOver(const std::string& backend, seconds op_timeout = seconds(30)) {
  at::set_num_threads(1);
  return init(InitOptions().backend(backend).init_timeout(seconds(40)).op_timeout(op_timeout));
}

// A rank of each for tests that need several.
int Gpus() {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/dev")) {
    const std::string name = entry.path().filename();
    count += name.starts_with("nvidia") && name.size() > 6 && std::isdigit(name[6]) != 0;
  }
  return count;
}

TEST(Nccl, AWorldOfOneDoesEachCollectiveOnEachType) {
  EXPECT_TRUE(OnRanks(1, [](int) {
    const World world = JoinOver("nccl");
    EXPECT_EQ(world.backend(), "nccl");
    EXPECT_TRUE(world.device().is_cuda());
    const auto numbers = at::TensorOptions().device(world.device());
    for (const auto type : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kInt, at::kLong,
                            at::kByte, at::kChar, at::kShort, at::kBool, at::kComplexFloat}) {
      const bool ordered = type != at::kBool && type != at::kComplexFloat;
      const at::Tensor one = at::arange(6, numbers).to(type).reshape({2, 3});
      const at::Tensor tensor = one.clone();
      world.all_reduce(tensor);
      if (ordered) {
        for (const Op op : {Op::mean, Op::min, Op::max}) world.all_reduce(tensor, op);
      }
      world.broadcast(tensor);
      EXPECT_TRUE(tensor.equal(one)) << type;
      EXPECT_TRUE(world.all_gather(one).equal(one.unsqueeze(0))) << type;
      EXPECT_TRUE(world.reduce_scatter(one).equal(one)) << type;
    }
    world.barrier();
    return 0;
  }));
}

TEST(Nccl, WhatIsOnTheCpuTravelsAsWell) {
  EXPECT_TRUE(OnRanks(1, [](int) {
    const World world = JoinOver("nccl");
    const at::Tensor on_cpu = at::ones({3});
    world.all_reduce(on_cpu);
    const Pending pending = world.all_reduce_async(at::ones({3}).to(world.device()));
    pending.wait();
    EXPECT_EQ(on_cpu.sum().item<float>(), 3);
    return 0;
  }));
}

// Parameters after some steps, on the CPU.
at::Tensor Trained(const World& world, const DDPOptions& options, int64_t accumulate) {
  const auto net = std::make_shared<SmallNet>();
  net->to(world.device());
  DistributedDataParallel<SmallNet> ddp(net, world, options);
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  for (int64_t step = 0; step < kSteps; ++step) {
    const bool last = (step + 1) % accumulate == 0;
    const auto skip = ddp.no_sync(!last);
    const Batch batch = BatchOf(step, world.rank());
    ddp.backward(Loss(ddp(batch.x.to(world.device())), batch.y.to(world.device())));
    if (!last) continue;
    ddp.clip_grad_norm(1);
    optimizer.step();
    ddp.zero_grad();
  }
  EXPECT_EQ(ddp.max_parameter_difference(), 0);
  return Flat(*net).cpu();
}

TEST(Nccl, ATrainingEndsAsOverGloo) {
  EXPECT_TRUE(OnRanks(1, [](int) {
    const World nccl = JoinOver("nccl");
    const World gloo = JoinOver("gloo");
    for (const auto& options :
         {DDPOptions(), DDPOptions().gradient_as_bucket_view(true), DDPOptions().static_graph(true),
          DDPOptions().find_unused_parameters(true), DDPOptions().comm_hook(hooks::allreduce())}) {
      for (const int64_t accumulate : {1, 3}) {
        EXPECT_LT(Distance(Trained(nccl, options, accumulate), Trained(gloo, options, accumulate)),
                  1e-4);
      }
    }
    return 0;
  }));
}

TEST(Nccl, LowPrecisionAndItsScalerWork) {
  EXPECT_TRUE(OnRanks(1, [](int) {
    const World world = JoinOver("nccl");
    const auto net = std::make_shared<SmallNet>();
    net->to(world.device());
    DistributedDataParallel<SmallNet> ddp(net, world, DDPOptions().comm_hook(hooks::fp16()));
    torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.1));
    GradScaler scaler(world);
    const Batch batch = BatchOf(0, 0);
    const at::Tensor x = batch.x.to(world.device()), y = batch.y.to(world.device());
    const double before = Loss(net->forward(x), y).item<double>();
    for (int64_t step = 0; step < kSteps; ++step) {
      at::Tensor loss;
      {
        const Autocast autocast(world.device());
        const at::Tensor output = ddp(x);
        EXPECT_EQ(output.scalar_type(), at::kHalf);
        loss = Loss(output, y);
      }
      ddp.zero_grad();
      ddp.backward(scaler.scale(loss));
      scaler.step(optimizer);
      scaler.update();
    }
    EXPECT_LT(Loss(net->forward(x), y).item<double>(), before);
    return 0;
  }));
}

TEST(Nccl, TwoRanksOnOneGpuAreRefusedByName) {
  EXPECT_TRUE(OnRanks(2,
                      [](int) {
                        try {
                          JoinOver("nccl");
                          ADD_FAILURE() << "no error";
                        } catch (const Error& error) {
                          EXPECT_THAT(error.what(), HasSubstr("Duplicate GPU detected"));
                        }
                        return 0;
                      },
                      {{"CUDA_VISIBLE_DEVICES", "0"}}));
}

constexpr const char* kOneGpu = "one GPU: NCCL takes one rank on each, and this needs two";

TEST(Nccl, AnAbortFreesARankFromACollectiveThatAnotherDoesNotComeTo) {
  if (Gpus() < 2) GTEST_SKIP() << kOneGpu;
  int freed[2];
  ASSERT_EQ(pipe(freed), 0);
  EXPECT_TRUE(OnRanks(2, [&](int rank) {
    FakeAgent agent(rank);
    setenv("MUSTER_SOCKET", agent.path().c_str(), 1);
    const World world = JoinOver("nccl");
    agent.Accept();
    char byte = 0;
    if (rank == 1) return read(freed[0], &byte, 1) == 1 ? 0 : 1;
    const at::Tensor tensor = at::ones({1}).to(world.device());
    const Pending pending = world.all_reduce_async(tensor);
    agent.Say("ABORT=0");
    try {
      pending.wait();
      tensor.cpu();  // until the collective's kernel has gone
      world.barrier();
      ADD_FAILURE() << "no error";
    } catch (const PeerLost& error) {
      EXPECT_THAT(error.what(), HasSubstr("(ABORT)"));
    }
    return write(freed[1], &byte, 1) == 1 ? 0 : 1;
  }));
}

TEST(Nccl, TwoGpusShareWhatTheyHave) {
  if (Gpus() < 2) GTEST_SKIP() << kOneGpu;
  EXPECT_TRUE(OnRanks(2, [](int rank) {
    const World world = JoinOver("nccl");
    const at::Tensor tensor = at::full({4}, rank + 1, at::kFloat).to(world.device());
    const at::Tensor all = world.all_gather(tensor).cpu();
    EXPECT_EQ(all[0][0].item<float>() + all[1][0].item<float>(), 3);
    world.broadcast(tensor, 1);
    EXPECT_EQ(tensor.cpu()[0].item<float>(), 2);
    EXPECT_EQ(world.reduce_scatter(tensor).cpu().sum().item<float>(), 8);
    const at::Tensor mean = at::full({4}, rank + 1, at::kFloat).to(world.device());
    world.all_reduce(mean, Op::mean);
    EXPECT_EQ(mean.cpu()[0].item<float>(), 1.5);
    Trained(world, {}, 1);
    return 0;
  }));
}

}  // namespace
}  // namespace muster
