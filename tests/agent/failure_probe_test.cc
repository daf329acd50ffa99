#include "agent/failure_probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "tests/agent/temporary_folder.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

// A /proc, a cgroup tree and a kernel log of its own.
class FailureProbeTest : public ::testing::Test {
 protected:
  FailureProbeTest() {
    for (const char* folder : {"/self", "/self/ns", "/sys", "/sys/kernel", "/cg", "/cg/job"}) {
      mkdir((root() + folder).c_str(), 0700);
    }
    Write("/self/cgroup", "0::/job\n");
    Write("/cg/job/memory.events", "oom 1\noom_kill 1\n");
    Write("/kmsg", "");
  }

  std::string root() const { return folder_.path(); }
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(root() + name) << text;
  }
  std::string Explain(const ExitStatus& status) {
    const FailureProbe::Finding finding = probe_.Explain(status, 812, "/x/train");
    out_of_memory_ = finding.out_of_memory;
    return finding.text;
  }

  TemporaryFolder folder_;
  FailureProbe probe_{{root(), root() + "/cg", root() + "/kmsg"}};
  bool out_of_memory_ = false;  // what the last Explain found
};

TEST_F(FailureProbeTest, AKillForLackOfMemoryIsToldByTheCount) {
  probe_.Begin();
  Write("/cg/job/memory.events", "oom 2\noom_kill 2\n");
  EXPECT_THAT(Explain(ExitStatus::Signalled(SIGKILL)), HasSubstr("out of memory: the kernel kill"));
  EXPECT_TRUE(out_of_memory_);
}

TEST_F(FailureProbeTest, AKillWithoutACountIsSomebodyElses) {
  probe_.Begin();
  EXPECT_THAT(Explain(ExitStatus::Signalled(SIGKILL)), HasSubstr("not for lack of memory"));
  EXPECT_FALSE(out_of_memory_);
}

TEST_F(FailureProbeTest, CgroupsOfVersionOneCountToo) {
  unlink((root() + "/cg/job/memory.events").c_str());
  mkdir((root() + "/cg/memory").c_str(), 0700);
  Write("/cg/memory/memory.oom_control", "under_oom 0\noom_kill 0\n");
  probe_.Begin();
  Write("/cg/memory/memory.oom_control", "under_oom 0\noom_kill 1\n");
  EXPECT_THAT(Explain(ExitStatus::Signalled(SIGKILL)), HasSubstr("out of memory"));
}

TEST_F(FailureProbeTest, WithoutFilesNothingIsClaimed) {
  FailureProbe blind({"/no/proc", "/no/cgroup", "/no/kmsg"});
  blind.Begin();
  EXPECT_EQ(blind.Explain(ExitStatus::Signalled(SIGKILL), 812, "x").text, "");
  EXPECT_EQ(Explain(ExitStatus::Exited(3)), "");
  EXPECT_EQ(Explain(ExitStatus::Signalled(SIGTERM)), "");
}

TEST_F(FailureProbeTest, ACoreDumpIsLocated) {
  Write("/sys/kernel/core_pattern", "/cores/%e.%p\n");
  EXPECT_EQ(Explain(ExitStatus::Signalled(SIGSEGV, true)), "core dump: /cores/train.812");
}

TEST_F(FailureProbeTest, TheKernelLogIsQuotedWhereItsPidsAreOurs) {
  Write("/kmsg", "4,1,2,-;Out of memory: Killed process 812 (train) total-vm:9kB\n");
  EXPECT_EQ(Explain(ExitStatus::Signalled(SIGKILL)), "");
  ASSERT_EQ(symlink("pid:[4026531836]", (root() + "/self/ns/pid").c_str()), 0);
  EXPECT_EQ(Explain(ExitStatus::Signalled(SIGKILL)),
            "kernel: Out of memory: Killed process 812 (train) total-vm:9kB");
  EXPECT_TRUE(out_of_memory_);
}

}  // namespace
}  // namespace muster
