#include "check/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace muster::check {
namespace {

namespace fs = std::filesystem;

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

void Write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

// A machine with two GPUs and one InfiniBand device of two ports.
std::string RecordedRoot() {
  const std::string root = ::testing::TempDir() + "/machine";
  Write(
      root + "/proc/driver/nvidia/version",
      "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.124.06  Wed Feb 26 2025\nGCC 12.2.0\n");
  for (const char* name : {"nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "null"}) {
    Write(root + "/dev/" + name, "");
  }
  fs::create_directories(root + "/dev/shm");
  Write(root + "/sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
  Write(root + "/sys/class/infiniband/mlx5_0/ports/2/state", "1: DOWN\n");
  return root;
}

TEST(Machine, TellsWhatIsThere) {
  Identity identity;
  identity.rank = 3;
  identity.local_rank = 1;
  identity.local_world_size = 2;
  identity.node = 1;
  identity.local_addr = "10.0.0.7";
  identity.master_addr = "127.0.0.1";
  const EnvMap env = {{"NCCL_DEBUG", "INFO\x1b"}, {"GLOO_SOCKET_IFNAME", "eth0"}, {"HOME", "/x"}};
  const Facts facts = CollectFacts(identity, env, "auto", RecordedRoot());
  EXPECT_EQ(facts.rank, 3);
  EXPECT_EQ(facts.local_rank, 1);
  EXPECT_EQ(facts.workers, 2);
  EXPECT_EQ(facts.node, 1);
  EXPECT_EQ(facts.address, "10.0.0.7");
  EXPECT_EQ(facts.backend, "nccl");
  EXPECT_EQ(facts.driver, "570.124.06");
  EXPECT_EQ(facts.gpus, 2);
  EXPECT_EQ(facts.all_gpus, 2);
  EXPECT_GT(facts.shared_memory, 0);
  EXPECT_THAT(facts.infiniband, ElementsAre("mlx5_0:1 ACTIVE", "mlx5_0:2 DOWN"));
  EXPECT_THAT(facts.node_addresses, ElementsAre("10.0.0.7"));
  EXPECT_THAT(facts.master_addresses, ElementsAre("127.0.0.1"));
  EXPECT_THAT(facts.variables,
              UnorderedElementsAre(Pair("NCCL_DEBUG", "INFO"), Pair("GLOO_SOCKET_IFNAME", "eth0")));
  ASSERT_NE(InterfaceOf(facts, "127.0.0.1"), nullptr);
  EXPECT_GT(InterfaceOf(facts, "127.0.0.1")->mtu, 0);
}

TEST(Machine, WithoutGpusUsesGlooUnlessToldOtherwise) {
  const std::string empty = ::testing::TempDir() + "/nothing";
  EXPECT_EQ(CollectFacts(Identity(), {}, "auto", empty).backend, "gloo");
  EXPECT_EQ(CollectFacts(Identity(), {}, "nccl", empty).backend, "nccl");
  EXPECT_EQ(CollectFacts(Identity(), {}, "auto", empty).driver, "");
}

TEST(Machine, CountsTheGpusThatCudaShows) {
  const struct {
    const char* visible;
    int count;
  } rows[] = {{"0", 1},     {"1,0", 2}, {"", 0},       {"-1", 0},
              {"0,7,1", 1}, {"x", 0},   {"GPU-8a", 1}, {"MIG-1,MIG-2,MIG-3", 3}};
  for (const auto& row : rows) {
    const EnvMap env = {{"CUDA_VISIBLE_DEVICES", row.visible}};
    const Facts facts = CollectFacts(Identity(), env, "auto", RecordedRoot());
    EXPECT_EQ(facts.gpus, row.count) << row.visible;
    EXPECT_EQ(facts.all_gpus, 2);
  }
}

TEST(Addresses, OfALiteralAreItself) {
  EXPECT_THAT(ResolvedAddresses("10.0.0.7"), ElementsAre("10.0.0.7"));
  EXPECT_THAT(ResolvedAddresses("::1"), ElementsAre("::1"));
  EXPECT_THAT(ResolvedAddresses("localhost"), Contains(::testing::AnyOf("127.0.0.1", "::1")));
}

TEST(Addresses, OfANameThatIsNoneComeWithTheResolversWords) {
  std::string problem;
  EXPECT_THAT(ResolvedAddresses("no-such-host.invalid", &problem), IsEmpty());
  EXPECT_FALSE(problem.empty());
}

}  // namespace
}  // namespace muster::check
