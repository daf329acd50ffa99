#include "launcher/node_name.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <utility>

namespace muster {
namespace {

class NodeNameTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/names-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }

  std::string folder_;
};

TEST_F(NodeNameTest, TheSecondAgentOfAHostGetsAnotherName) {
  auto first = ClaimNodeName(folder_, "job", "host");
  auto second = ClaimNodeName(folder_, "job", "host");
  auto third = ClaimNodeName(folder_, "job", "host");
  ASSERT_TRUE(first.ok() && second.ok() && third.ok());
  EXPECT_EQ(first->name, "host");
  EXPECT_EQ(second->name, "host#1");
  EXPECT_EQ(third->name, "host#2");
  second->lock.reset();
  EXPECT_EQ(ClaimNodeName(folder_, "job", "host")->name, "host#1");
}

TEST_F(NodeNameTest, OtherJobsAndOtherHostsDoNotMeet) {
  auto first = ClaimNodeName(folder_, "job", "host");
  EXPECT_EQ(ClaimNodeName(folder_, "job2", "host")->name, "host");
  EXPECT_EQ(ClaimNodeName(folder_, "job", "host2")->name, "host2");
}

TEST_F(NodeNameTest, AChildKeepsTheNameOfItsParent) {
  auto name = ClaimNodeName(folder_, "job", "host");
  ASSERT_TRUE(name.ok());
  int hold[2];
  ASSERT_EQ(pipe(hold), 0);
  pid_t child = fork();
  if (child == 0) {
    close(hold[1]);
    char byte;
    _exit(read(hold[0], &byte, 1) == 0 ? 0 : 1);  // until the parent closes its end
  }
  name->lock.reset();
  EXPECT_EQ(ClaimNodeName(folder_, "job", "host")->name, "host#1");
  close(hold[1]);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(ClaimNodeName(folder_, "job", "host")->name, "host");
  close(hold[0]);
}

TEST_F(NodeNameTest, AFolderOfOthersIsRefused) {
  chmod(folder_.c_str(), 0777);
  absl::Status status = ClaimNodeName(folder_, "job", "host").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(status.message().find(folder_), status.message().npos);
  EXPECT_FALSE(ClaimNodeName(folder_ + "/missing/deeper", "job", "host").ok());
}

TEST_F(NodeNameTest, AMissingFolderIsMade) {
  EXPECT_EQ(ClaimNodeName(folder_ + "/new", "job", "host")->name, "host");
}

}  // namespace
}  // namespace muster
