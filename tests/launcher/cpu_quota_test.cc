#include "launcher/cpu_quota.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace muster {
namespace {

TEST(CpuMax, IsRoundedDownToWholeCpusButOne) {
  EXPECT_EQ(ParseCpuMax("200000 100000\n"), 2);
  EXPECT_EQ(ParseCpuMax("350000 100000"), 3);
  EXPECT_EQ(ParseCpuMax("10000 100000"), 1);
  for (const char* none :
       {"max 100000", "", "x", "1", "-1 100000", "100000 0", "1 2 3", "99999999999999999999 1"}) {
    EXPECT_EQ(ParseCpuMax(none), std::nullopt) << none;
  }
}

TEST(CfsQuota, OfMinusOneIsNone) {
  EXPECT_EQ(ParseCfsQuota("150000\n", "100000\n"), 1);
  EXPECT_EQ(ParseCfsQuota("400000", "100000"), 4);
  EXPECT_EQ(ParseCfsQuota("-1", "100000"), std::nullopt);
  EXPECT_EQ(ParseCfsQuota("", ""), std::nullopt);
}

TEST(CgroupPath, IsTheOneWithTheCpuController) {
  const std::string v1 = "9:name=systemd:/\n3:cpuset:/s\n2:cpu,cpuacct:/docker/a:b\n0::/x\n";
  EXPECT_EQ(ParseCgroupPath(v1, true), "/docker/a:b");
  EXPECT_EQ(ParseCgroupPath(v1, false), "/x");
  EXPECT_EQ(ParseCgroupPath("0::/\n", false), "");
  EXPECT_EQ(ParseCgroupPath("0::/\n", true), std::nullopt);
  EXPECT_EQ(ParseCgroupPath("0:cpu\n\n::", true), std::nullopt);
}

// A folder in place of "/" in which files can be made.
class CpuQuotaTest : public ::testing::Test {
 protected:
  CpuQuotaTest() { std::filesystem::remove_all(root_); }

  void File(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }

  std::string root_ = ::testing::TempDir() + "/quota";
};

TEST_F(CpuQuotaTest, IsTheLeastFromTheCgroupUpwards) {
  File("/proc/self/cgroup", "0::/pod/container\n");
  File("/sys/fs/cgroup/pod/container/cpu.max", "max 100000\n");
  EXPECT_EQ(CpuQuota(root_), std::nullopt);
  File("/sys/fs/cgroup/pod/cpu.max", "300000 100000\n");
  EXPECT_EQ(CpuQuota(root_), 3);
  File("/sys/fs/cgroup/pod/container/cpu.max", "200000 100000\n");
  EXPECT_EQ(CpuQuota(root_), 2);
}

TEST_F(CpuQuotaTest, AContainerSeesItsLimitAtTheTop) {
  File("/proc/self/cgroup", "0::/\n");
  File("/sys/fs/cgroup/cpu.max", "400000 100000\n");
  EXPECT_EQ(CpuQuota(root_), 4);
}

TEST_F(CpuQuotaTest, Version1HasAFolderOfItsOwn) {
  File("/proc/self/cgroup", "1:cpu:/job\n0::/\n");
  File("/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "250000\n");
  File("/sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(CpuQuota(root_), 2);
}

TEST_F(CpuQuotaTest, WithoutCgroupsThereIsNone) { EXPECT_EQ(CpuQuota(root_), std::nullopt); }

}  // namespace
}  // namespace muster
