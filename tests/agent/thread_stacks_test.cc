#include "agent/thread_stacks.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "tests/agent/temporary_folder.h"

namespace muster {
namespace {

using Lines = std::vector<std::string>;

class ThreadStacksTest : public ::testing::Test {
 protected:
  // One thread of process 7 as the kernel shows it.
  void Thread(const std::string& id, const std::string& name, char state) {
    const std::string folder = proc_ / ("7/task/" + id);
    std::filesystem::create_directories(folder);
    WriteText(folder + "/comm", name + "\n");
    WriteText(folder + "/stat", id + " (" + name + ") " + state + " 1 1");
    WriteText(folder + "/wchan", "futex_wait_queue");
    WriteText(folder + "/syscall", "202 0x7f 0x0");
  }

  TemporaryFolder proc_;
};

TEST_F(ThreadStacksTest, EachThreadIsALine) {
  Thread("12", "pt_autograd_0", 'R');
  Thread("7", "train) er", 'S');
  EXPECT_EQ(ThreadStacks(7, 10, proc_.path()),
            (Lines{"thread 7 (train) er): sleeping in futex_wait_queue, system call 202",
                   "thread 12 (pt_autograd_0): running in futex_wait_queue, system call 202"}));
}

TEST_F(ThreadStacksTest, TheKernelsStackStandsBelowWhereItCanBeRead) {
  Thread("7", "trainer", 'D');
  WriteText(proc_ / "7/task/7/stack", "[<0>] nfs_wait+0x1/0x2\n[<0>] do_syscall_64+0x3/0x4\n");
  EXPECT_EQ(
      ThreadStacks(7, 10, proc_.path()),
      (Lines{"thread 7 (trainer): in uninterruptible sleep in futex_wait_queue, system call 202",
             "  nfs_wait+0x1/0x2", "  do_syscall_64+0x3/0x4"}));
}

TEST_F(ThreadStacksTest, WhatCannotBeReadIsLeftOut) {
  std::filesystem::create_directories(proc_ / "7/task/7");
  EXPECT_EQ(ThreadStacks(7, 10, proc_.path()), Lines{"thread 7: in an unknown state"});
  EXPECT_EQ(ThreadStacks(8, 10, proc_.path()), Lines());
}

TEST_F(ThreadStacksTest, TheNumberOfThreadsIsBounded) {
  for (int i = 7; i < 12; ++i) Thread(std::to_string(i), "trainer", 'S');
  const Lines lines = ThreadStacks(7, 2, proc_.path());
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines.back(), "and 3 more threads");
}

TEST_F(ThreadStacksTest, ThisProcessIsRunning) {
  const Lines lines = ThreadStacks(getpid(), 1);
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(lines[0].find("thread " + std::to_string(getpid())), 0u);
  EXPECT_NE(lines[0].find("running"), std::string::npos);
}

}  // namespace
}  // namespace muster
