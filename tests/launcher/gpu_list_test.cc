#include "launcher/gpu_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kNoNvml[] = "no-such-library.so";

// An empty folder in place of "/".
std::string NewRoot(const std::string& name) {
  std::string root = ::testing::TempDir() + "/" + name;
  std::filesystem::remove_all(root);
  std::filesystem::create_directories(root + "/dev");
  return root;
}

TEST(ListGpus, AsksNvml) {
  std::vector<Gpu> gpus = ListGpus(NewRoot("nvml"), "./tests/launcher/fake_nvml.so");
  ASSERT_THAT(gpus, SizeIs(3));
  EXPECT_EQ(gpus[2].uuid, "GPU-22-fake");
  EXPECT_EQ(gpus[2].pci_address, "0000:2b:00.0");
}

TEST(ListGpus, WithoutNvmlLooksAtTheDriversFolder) {
  std::string root = NewRoot("proc");
  for (const char* address : {"0000:3B:00.0", "0000:1b:00.0"}) {
    std::filesystem::create_directories(root + "/proc/driver/nvidia/gpus/" + address);
  }
  std::vector<Gpu> gpus = ListGpus(root, kNoNvml);
  ASSERT_THAT(gpus, SizeIs(2));
  EXPECT_EQ(gpus[0].pci_address, "0000:1b:00.0");
  EXPECT_EQ(gpus[1].pci_address, "0000:3b:00.0");
}

TEST(ListGpus, AContainerHasOnlyTheGpusWhoseDeviceFilesItSees) {
  std::string root = NewRoot("container");
  for (const char* address : {"0000:1b:00.0", "0000:3b:00.0"}) {
    std::filesystem::create_directories(root + "/proc/driver/nvidia/gpus/" + address);
  }
  for (const char* name : {"nvidia3", "nvidiactl", "nvidia-uvm", "nvidia"}) {
    std::ofstream(root + "/dev/" + name) << "";
  }
  std::vector<Gpu> gpus = ListGpus(root, kNoNvml);
  ASSERT_THAT(gpus, SizeIs(1));
  EXPECT_EQ(gpus[0].pci_address, "");
}

TEST(ListGpus, AMachineWithoutADriverHasNone) {
  EXPECT_THAT(ListGpus(NewRoot("bare"), kNoNvml), IsEmpty());
}

std::vector<int> Visible(const char* list) {
  const std::vector<Gpu> gpus = {{"GPU-aa-0", ""}, {"GPU-ab-1", ""}, {"GPU-ac-2", ""}};
  return VisibleGpus(gpus, {{"CUDA_VISIBLE_DEVICES", list}});
}

TEST(VisibleGpus, IndicesUuidsAndMigDevicesCount) {
  EXPECT_THAT(Visible("2,0"), ElementsAre(2, 0));
  EXPECT_THAT(Visible(" 1 , 2 "), ElementsAre(1, 2));
  EXPECT_THAT(Visible("GPU-ab-1,GPU-aa"), ElementsAre(1, 0));
  EXPECT_THAT(Visible("MIG-1f,MIG-2f"), ElementsAre(-1, -1));
  EXPECT_THAT(Visible("GPU-ac,0"), ElementsAre(2, 0));
}

TEST(VisibleGpus, TheListEndsAtTheFirstEntryThatIsNone) {
  EXPECT_THAT(Visible("1,3,0"), ElementsAre(1));
  EXPECT_THAT(Visible("0,GPU-zz,1"), ElementsAre(0));
  for (const char* none : {"", "-1", "NoDevFiles", "x", ","}) EXPECT_THAT(Visible(none), IsEmpty());
}

TEST(VisibleGpus, AGpuNamedTwiceMakesAllInvisible) {
  EXPECT_THAT(Visible("0,1,0"), IsEmpty());
  EXPECT_THAT(Visible("1,GPU-ab"), IsEmpty());
}

TEST(VisibleGpus, WithoutTheVariableAllAre) {
  EXPECT_THAT(VisibleGpus({{}, {}}, {}), ElementsAre(0, 1));
}

TEST(VisibleGpus, UuidsThatTheDriverDoesNotTellAreBelieved) {
  const EnvMap env = {{"CUDA_VISIBLE_DEVICES", "GPU-1,GPU-2"}};
  EXPECT_THAT(VisibleGpus({{"", "0000:1b:00.0"}, {"", ""}}, env), ElementsAre(-1, -1));
  EXPECT_THAT(VisibleGpus({}, env), IsEmpty());
}

}  // namespace
}  // namespace muster
