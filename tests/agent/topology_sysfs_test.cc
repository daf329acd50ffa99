#include "agent/topology_sysfs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/agent/temporary_folder.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A tree as /sys had it: path and content of each file, in the kernel's own spelling.
class Tree {
 public:
  Tree& Has(const std::string& path, const std::string& text) {
    const std::string full = folder_ / path;
    std::filesystem::create_directories(std::filesystem::path(full).parent_path());
    WriteText(full, text + "\n");
    return *this;
  }

  Tree& HasCpu(int id, const std::string& siblings, const std::string& package,
               const std::string& l3) {
    const std::string cpu = "sys/devices/system/cpu/cpu" + std::to_string(id);
    Has(cpu + "/topology/thread_siblings_list", siblings);
    Has(cpu + "/topology/physical_package_id", package);
    Has(cpu + "/cache/index0/level", "1");
    Has(cpu + "/cache/index0/shared_cpu_list", siblings);
    if (!l3.empty()) {
      Has(cpu + "/cache/index1/level", "3");
      Has(cpu + "/cache/index1/shared_cpu_list", l3);
    }
    return *this;
  }

  const std::string& root() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
};

TEST(CpuList, IsReadAndWrittenAsTheKernelDoes) {
  EXPECT_THAT(*ParseCpuList("0-3,8"), ElementsAre(0, 1, 2, 3, 8));
  EXPECT_THAT(*ParseCpuList("5,1-2"), ElementsAre(1, 2, 5));
  EXPECT_THAT(*ParseCpuList(""), IsEmpty());
  EXPECT_EQ(CpuListText({0, 1, 2, 3, 8}), "0-3,8");
  EXPECT_EQ(CpuListText({}), "");
  for (const char* bad : {",", "1,", ",1", "1-", "-1", "3-1", "x", "1 ", "0-99999999", "0x1"}) {
    EXPECT_FALSE(ParseCpuList(bad).has_value()) << bad;
  }
}

TEST(Topology, OfTwoSocketsWithTwoThreadsACore) {
  Tree tree;
  tree.Has("sys/devices/system/cpu/online", "0-7").Has("sys/devices/system/node/online", "0-1");
  tree.Has("sys/devices/system/node/node0/cpulist", "0-1,4-5");
  tree.Has("sys/devices/system/node/node1/cpulist", "2-3,6-7");
  for (int id : {0, 4}) tree.HasCpu(id, "0,4", "0", "0-1,4-5");
  for (int id : {1, 5}) tree.HasCpu(id, "1,5", "0", "0-1,4-5");
  for (int id : {2, 6}) tree.HasCpu(id, "2,6", "1", "2-3,6-7");
  for (int id : {3, 7}) tree.HasCpu(id, "3,7", "1", "2-3,6-7");
  EXPECT_THAT(
      ReadTopology(tree.root(), {0, 3, 5, 6}).cpus,
      ElementsAre(Cpu{0, 0, 0, 0, 0}, Cpu{3, 3, 2, 1, 1}, Cpu{5, 1, 0, 0, 0}, Cpu{6, 2, 2, 1, 1}));
}

TEST(Topology, OfAVirtualMachineWithoutL3CacheIsOneCacheANode) {
  Tree tree;
  tree.Has("sys/devices/system/cpu/online", "0-2").Has("sys/devices/system/node/online", "0");
  tree.Has("sys/devices/system/node/node0/cpulist", "0-2");
  for (int id : {0, 1, 2}) tree.HasCpu(id, std::to_string(id), "0", "");
  EXPECT_THAT(ReadTopology(tree.root(), {1, 2}).cpus,
              ElementsAre(Cpu{1, 1, 1, 0, 0}, Cpu{2, 2, 1, 0, 0}));
}

TEST(Topology, LeavesOutWhatIsOffline) {
  Tree tree;
  tree.Has("sys/devices/system/cpu/online", "0,2");
  EXPECT_EQ(ReadTopology(tree.root(), {0, 1, 2}).cpus.size(), 2u);
}

TEST(Topology, WithoutSysEveryCpuIsACoreOfOneNode) {
  Tree tree;
  EXPECT_THAT(ReadTopology(tree.root(), {0, 1}).cpus,
              ElementsAre(Cpu{0, 0, 0, 0, -1}, Cpu{1, 1, 0, 0, -1}));
}

TEST(Topology, APciDeviceHasANumaNodeOrNot) {
  Tree tree;
  tree.Has("sys/bus/pci/devices/0000:3b:00.0/numa_node", "1");
  EXPECT_EQ(NumaNodeOfPciDevice(tree.root(), "0000:3b:00.0"), 1);
  EXPECT_EQ(NumaNodeOfPciDevice(tree.root(), "0000:3c:00.0"), -1);
  EXPECT_EQ(NumaNodeOfPciDevice(tree.root(), "../devices/0000:3b:00.0"), -1);
}

}  // namespace
}  // namespace muster
