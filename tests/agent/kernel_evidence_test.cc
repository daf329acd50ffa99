#include "agent/kernel_evidence.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(CoreDumpPlaceTest, EveryKindOfPatternIsFollowed) {
  const CoreDump dump{812, 11, "/opt/job/trainer_with_a_long_name", "/data/run", "gpu7"};
  struct Row {
    const char* pattern;
    bool uses_pid;
    const char* place;
  };
  const Row table[] = {
      {"core\n", false, "/data/run/core"},
      {"core\n", true, "/data/run/core.812"},
      {"core.%p\n", true, "/data/run/core.812"},
      {"/cores/%e-%p-%s-%h-%t\n", false, "/cores/trainer_with_a_-812-11-gpu7-*"},
      {"/cores/%E%%\n", false, "/cores/!opt!job!trainer_with_a_long_name%"},
      {"/cores/x%", false, "/cores/x"},
      {"|/usr/lib/systemd/systemd-coredump %P %u\n", false,
       "piped to /usr/lib/systemd/systemd-coredump: see coredumpctl info 812"},
      {"|/usr/share/apport/apport -p%p\n", false,
       "piped to /usr/share/apport/apport: see /var/crash"},
      {"|/bin/false", false, "piped to /bin/false"},
      {"\n", true, ""},
      {"", false, ""},
  };
  for (const Row& row : table) {
    EXPECT_EQ(CoreDumpPlace(row.pattern, row.uses_pid, dump), row.place) << row.pattern;
  }
}

TEST(OomKillsTest, BothVersionsOfCgroupsAreRead) {
  EXPECT_EQ(OomKills("low 0\nhigh 0\nmax 23\noom 4\noom_kill 3\noom_group_kill 1\n"), 3);
  EXPECT_EQ(OomKills("oom_kill_disable 0\nunder_oom 0\noom_kill 12\n"), 12);
  EXPECT_EQ(OomKills("oom_kill_disable 0\nunder_oom 0\n"), -1);
  EXPECT_EQ(OomKills("oom_kill x\n"), -1);
  EXPECT_EQ(OomKills(""), -1);
}

TEST(ParseCgroupsTest, FindsBothTrees) {
  EXPECT_EQ(ParseCgroups("0::/user.slice/a.scope\n"), (CgroupPaths{"/user.slice/a.scope", ""}));
  EXPECT_EQ(ParseCgroups("12:cpu,cpuacct:/x\n5:memory:/docker/ab\n1:name=systemd:/y\n0::/z\n"),
            (CgroupPaths{"/z", "/docker/ab"}));
  EXPECT_EQ(ParseCgroups("5:hugetlb,memory:/a:b\n"), (CgroupPaths{"", "/a:b"}));
  EXPECT_EQ(ParseCgroups("nonsense\n:\n"), CgroupPaths());
}

TEST(KernelRecordTest, TextIsWhatFollowsTheHead) {
  EXPECT_EQ(KernelRecordText("6,339,5140900,-;a; b\n SUBSYSTEM=x\n"), "a; b");
  EXPECT_EQ(KernelRecordText("6,339,5140900,-;"), "");
  EXPECT_EQ(KernelRecordText("nothing"), "");
}

TEST(KernelRecordTest, TellsOfTheEndOfThisProcessOnly) {
  const char* oom = "Out of memory: Killed process 812 (trainer) total-vm:9kB, anon-rss:8kB";
  EXPECT_TRUE(TellsOfEnd(oom, 812));
  EXPECT_FALSE(TellsOfEnd(oom, 81));
  EXPECT_FALSE(TellsOfEnd(oom, 8));
  EXPECT_TRUE(TellsOfEnd("Memory cgroup out of memory: Killed process 7 (a)", 7));
  EXPECT_TRUE(TellsOfEnd("trainer[812]: segfault at 0 ip 0000 sp 0000 error 4 in trainer", 812));
  EXPECT_TRUE(TellsOfEnd("traps: trainer[812] general protection fault ip:0 sp:0", 812));
  EXPECT_FALSE(TellsOfEnd("usb[812]: new device", 812));
  EXPECT_FALSE(TellsOfEnd("", 812));
}

}  // namespace
}  // namespace muster
