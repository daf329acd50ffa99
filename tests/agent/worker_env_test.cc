#include "agent/worker_env.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

namespace muster {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

Assignment SecondOfThreeNodes() {
  Assignment assignment;
  assignment.generation = 7;
  assignment.group_rank = 1;
  assignment.group_world_size = 3;
  assignment.rank_base = 4;
  assignment.world_size = 10;
  assignment.role_rank_base = 2;
  assignment.role_world_size = 6;
  assignment.master_addr = "fd00::1";
  assignment.master_port = 29123;
  assignment.restart_count = 2;
  return assignment;
}

WorkerIdentity ThirdOfFour() {
  WorkerIdentity worker;
  worker.local_rank = 2;
  worker.slots = 4;
  worker.role = "trainer";
  worker.job_id = "job/1";
  worker.node_id = "gpu7";
  worker.max_restarts = 5;
  worker.local_addr = "10.0.0.7";
  worker.socket_path = "/tmp/s";
  worker.error_file = "/tmp/e.json";
  return worker;
}

std::vector<std::string> Environment(const WorkerIdentity& worker, const EnvMap& inherited) {
  const auto env = WorkerEnvironment(worker, SecondOfThreeNodes(), inherited);
  EXPECT_TRUE(env.ok()) << env.status();
  return env.ok() ? *env : std::vector<std::string>();
}

TEST(WorkerEnvTest, IsTorchrunsListAndMustersOwn) {
  EXPECT_THAT(
      Environment(ThirdOfFour(), {}),
      ElementsAre("GROUP_RANK=1", "GROUP_WORLD_SIZE=3", "LOCAL_RANK=2", "LOCAL_WORLD_SIZE=4",
                  "MASTER_ADDR=fd00::1", "MASTER_PORT=29123", "MUSTER_GENERATION=7",
                  "MUSTER_LOCAL_ADDR=10.0.0.7", "MUSTER_NODE_ID=gpu7", "MUSTER_SOCKET=/tmp/s",
                  "OMP_NUM_THREADS=1", "RANK=6", "ROLE_NAME=trainer", "ROLE_RANK=4",
                  "ROLE_WORLD_SIZE=6", "TORCHELASTIC_ERROR_FILE=/tmp/e.json",
                  "TORCHELASTIC_MAX_RESTARTS=5", "TORCHELASTIC_RESTART_COUNT=2",
                  "TORCHELASTIC_RUN_ID=job/1", "TORCHELASTIC_USE_AGENT_STORE=False",
                  "TORCH_NCCL_ASYNC_ERROR_HANDLING=1", "WORLD_SIZE=10"));
}

TEST(WorkerEnvTest, InheritedNcclAndOmpSettingsStay) {
  const auto env = Environment(
      ThirdOfFour(), {{"TORCH_NCCL_ASYNC_ERROR_HANDLING", "3"}, {"OMP_NUM_THREADS", "8"}});
  EXPECT_THAT(env, Contains("TORCH_NCCL_ASYNC_ERROR_HANDLING=3"));
  EXPECT_THAT(env, Contains("OMP_NUM_THREADS=8"));
}

TEST(WorkerEnvTest, OneWorkerPerNodeLeavesOmpThreadsAlone) {
  WorkerIdentity worker = ThirdOfFour();
  worker.slots = 1;
  EXPECT_THAT(Environment(worker, {}), Not(Contains(StartsWith("OMP_NUM_THREADS="))));
}

TEST(WorkerEnvTest, WhatIsNotKnownIsLeftOutButTheErrorFileIsEmpty) {
  const auto env = Environment(WorkerIdentity(), {});
  EXPECT_THAT(env, Not(Contains(StartsWith("MUSTER_LOCAL_ADDR="))));
  EXPECT_THAT(env, Not(Contains(StartsWith("MUSTER_SOCKET="))));
  EXPECT_THAT(env, Not(Contains(StartsWith("TORCHELASTIC_SIGNALS_TO_HANDLE="))));
  EXPECT_THAT(env, Contains("TORCHELASTIC_ERROR_FILE="));
}

TEST(WorkerEnvTest, SignalsAreNamed) {
  WorkerIdentity worker;
  worker.signals_to_handle = {SIGTERM, SIGUSR1};
  EXPECT_THAT(Environment(worker, {}), Contains("TORCHELASTIC_SIGNALS_TO_HANDLE=SIGTERM,SIGUSR1"));
}

TEST(WorkerEnvTest, ExtraEnvironmentWinsAndEachNameIsGivenOnce) {
  WorkerIdentity worker = ThirdOfFour();
  worker.extra_env = {{"OMP_NUM_THREADS", "6"}, {"MY", "a=b"}};
  const auto env = Environment(worker, {});
  EXPECT_THAT(env, Contains("OMP_NUM_THREADS=6"));
  EXPECT_THAT(env, Not(Contains("OMP_NUM_THREADS=1")));
  EXPECT_THAT(env, Contains("MY=a=b"));
}

struct DeviceCase {
  const char* name;
  EnvMap inherited;
  const char* expected;  // null: the variable is left as inherited
};

class VirtualLocalRankTest : public ::testing::TestWithParam<DeviceCase> {};

TEST_P(VirtualLocalRankTest, EachWorkerSeesItsOwnDeviceAsTheFirst) {
  WorkerIdentity worker = ThirdOfFour();
  worker.virtual_local_rank = true;
  const auto env = Environment(worker, GetParam().inherited);
  EXPECT_THAT(env, Contains("LOCAL_RANK=0"));
  EXPECT_THAT(env, Contains("RANK=6"));
  EXPECT_THAT(env, Contains("ROLE_RANK=4"));
  if (GetParam().expected != nullptr) {
    EXPECT_THAT(env, Contains(GetParam().expected));
  } else {
    EXPECT_THAT(env, Not(Contains(StartsWith("CUDA_VISIBLE_DEVICES="))));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Inherited, VirtualLocalRankTest,
    ::testing::Values(
        DeviceCase{"nothing", {}, "CUDA_VISIBLE_DEVICES=2"},
        DeviceCase{"numbers", {{"CUDA_VISIBLE_DEVICES", "7,6,5,4"}}, "CUDA_VISIBLE_DEVICES=5"},
        DeviceCase{"blanks", {{"CUDA_VISIBLE_DEVICES", "7, 6, 5"}}, "CUDA_VISIBLE_DEVICES=5"},
        DeviceCase{"ids",
                   {{"CUDA_VISIBLE_DEVICES", "GPU-aa,GPU-bb,MIG-cc"}},
                   "CUDA_VISIBLE_DEVICES=MIG-cc"},
        DeviceCase{"no_devices", {{"CUDA_VISIBLE_DEVICES", ""}}, nullptr}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(WorkerEnvTest, TooFewDevicesForVirtualLocalRankIsAnError) {
  WorkerIdentity worker = ThirdOfFour();
  worker.virtual_local_rank = true;
  const auto env =
      WorkerEnvironment(worker, SecondOfThreeNodes(), {{"CUDA_VISIBLE_DEVICES", "0,1"}});
  ASSERT_EQ(env.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(env.status().message()),
              HasSubstr("CUDA_VISIBLE_DEVICES=0,1 lists 2 devices, and local rank 2"));
}

}  // namespace
}  // namespace muster
