#include "agent/worker_group.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>

#include "base/exit_status.h"
#include "tests/agent/temporary_folder.h"
#include "tests/agent/warden_fixture.h"

namespace muster {
namespace {

// A folder that looks like a group of a warden with that pid.
std::string FakeGroup(const TemporaryFolder& parent, const std::string& name) {
  std::filesystem::create_directory(parent / name);
  WriteText(parent / (name + "/cgroup.kill"), "");
  return parent / name;
}

TEST(WorkerGroup, WithoutAParentThereIsNone) {
  WorkerGroup group = WorkerGroup::Make("");
  EXPECT_FALSE(group.exists());
  EXPECT_EQ(group.ForNextWorker(), -1);
  group.Kill();
  group.Remove();
}

TEST(WorkerGroup, WhereTheKernelCannotKillAGroupThereIsNone) {
  const TemporaryFolder parent;
  EXPECT_FALSE(WorkerGroup::Make(parent.path()).exists());
  EXPECT_TRUE(NamesIn(parent.path()).empty());
  EXPECT_FALSE(WorkerGroup::Make(parent / "missing").exists());
}

TEST(WorkerGroup, AGroupWhoseWardenIsDeadIsEndedAndOneOfALivingWardenIsNot) {
  const TemporaryFolder parent;
  const std::string abandoned = FakeGroup(parent, "muster-1");
  const std::string held = FakeGroup(parent, "muster-2");
  const std::string foreign = FakeGroup(parent, "other");
  const UniqueFd lock(open(held.c_str(), O_RDONLY | O_DIRECTORY));
  ASSERT_EQ(flock(lock.get(), LOCK_EX), 0);
  WorkerGroup::Make(parent.path());
  EXPECT_EQ(FileText(abandoned + "/cgroup.kill"), "1");
  EXPECT_EQ(FileText(held + "/cgroup.kill"), "");
  EXPECT_EQ(FileText(foreign + "/cgroup.kill"), "");
}

TEST(WorkerGroup, TheGroupOfADeadWardenIsFoundByItsPid) {
  const TemporaryFolder parent;
  const std::string folder = FakeGroup(parent, "muster-7");
  WorkerGroup::Of(parent.path(), 7).Kill();
  EXPECT_EQ(FileText(folder + "/cgroup.kill"), "1");
  EXPECT_FALSE(WorkerGroup::Of(parent.path(), 8).exists());
}

class RealWorkerGroup : public WardenTest {
 protected:
  void SetUp() override {
    parent_ = OwnGroupFolder();
    WorkerGroup probe = WorkerGroup::Make(parent_);
    if (!probe.exists()) GTEST_SKIP() << "no cgroup v2 can be made here";
    probe.Remove();
  }
  std::string FolderOf(int warden) const { return parent_ + "/muster-" + std::to_string(warden); }

  std::string parent_;
};

TEST_F(RealWorkerGroup, AWorkerIsInItFromTheStartAndItGoesWithTheWarden) {
  Start();
  Output output;
  Bash(0, "grep ^0:: /proc/self/cgroup; echo; sleep 600", output);
  const std::string line = output.Line();
  const std::string folder = FolderOf(host_->warden_pid());
  EXPECT_TRUE(std::filesystem::exists(folder));
  const std::string name = "/muster-" + std::to_string(host_->warden_pid());
  EXPECT_NE(line.find(name + "/workers-1"), std::string::npos) << line;
  SignalTree(SIGKILL);
  EXPECT_EQ(ExitStatus::FromWait(Next<ExitedAnswer>().wait_status).signal(), SIGKILL);
  host_.reset();
  EXPECT_FALSE(std::filesystem::exists(folder));
}

TEST_F(RealWorkerGroup, AWorkerThatIsStartedAfterAKillLives) {
  Start();
  for (const char* generation : {"1", "2", "3"}) {
    Output output;
    Bash(0, "echo up; sleep 600", output);
    EXPECT_EQ(output.Line(), "up") << generation;
    SignalTree(SIGKILL);
    EXPECT_EQ(ExitStatus::FromWait(Next<ExitedAnswer>().wait_status).signal(), SIGKILL);
  }
}

TEST_F(RealWorkerGroup, OfAWardenThatWasKilledIsRemoved) {
  Start();
  Output output;
  Bash(0, "setsid sleep 600 & echo up; wait", output);
  EXPECT_EQ(output.Line(), "up");
  const std::string folder = FolderOf(host_->warden_pid());
  kill(host_->warden_pid(), SIGKILL);
  EXPECT_TRUE(WaitFor([this] { return lost_; }));
  EXPECT_FALSE(std::filesystem::exists(folder));
}

}  // namespace
}  // namespace muster
