#include "agent/process_tree.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <functional>
#include <string>
#include <vector>

#include "base/unique_fd.h"

namespace muster {
namespace {

// Lets children tell their pids.
class Family {
 public:
  Family() {
    std::array<int, 2> ends;
    EXPECT_EQ(pipe(ends.data()), 0);
    reader_.reset(ends[0]);
    writer_.reset(ends[1]);
  }
  ~Family() {
    SignalDescendants(SIGKILL);
    while (waitpid(-1, nullptr, 0) > 0 || errno != ECHILD) SignalDescendants(SIGKILL);
  }

  // In the calling process: a child that runs `life`, says its pid and stays.
  void Fork(const std::function<void()>& life = [] {}) {
    if (fork() != 0) return;
    life();
    const int pid = getpid();
    if (write(writer_.get(), &pid, sizeof(pid)) != sizeof(pid)) _exit(1);
    while (true) pause();
  }

  int NextPid() {
    int pid = 0;
    EXPECT_EQ(read(reader_.get(), &pid, sizeof(pid)), ssize_t{sizeof(pid)});
    return pid;
  }

 private:
  UniqueFd reader_;
  UniqueFd writer_;
};

bool Contains(const std::vector<int>& pids, int pid) {
  return std::count(pids.begin(), pids.end(), pid) == 1;
}

TEST(ProcessTree, ListsChildrenBeforeGrandchildrenAndNobodyElse) {
  EXPECT_TRUE(Descendants().empty());
  Family family;
  family.Fork([&] { family.Fork(); });
  const std::array<int, 2> said = {family.NextPid(), family.NextPid()};
  const std::vector<int> pids = Descendants();
  ASSERT_EQ(pids.size(), 2u);
  EXPECT_TRUE(Contains(pids, said[0]));
  EXPECT_TRUE(Contains(pids, said[1]));
  EXPECT_EQ(waitpid(pids[0], nullptr, WNOHANG), 0) << "our child";
  EXPECT_EQ(waitpid(pids[1], nullptr, WNOHANG), -1) << "not ours";
}

TEST(ProcessTree, AnOrphanInASessionOfItsOwnBelongsToTheSubreaper) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  Family family;
  const int middle = fork();
  if (middle == 0) {
    family.Fork([] { setsid(); });
    _exit(0);
  }
  ASSERT_EQ(waitpid(middle, nullptr, 0), middle);
  const int orphan = family.NextPid();
  EXPECT_EQ(Descendants(), std::vector<int>{orphan});
  SignalDescendants(SIGTERM);
  int status = 0;
  EXPECT_EQ(waitpid(orphan, &status, 0), orphan);
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
}

TEST(ProcessTree, ASignalReachesEachDescendantWhateverItsName) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  Family family;
  // A name that looks like the fields which follow it in /proc/<pid>/stat.
  family.Fork([&] { family.Fork([] { prctl(PR_SET_NAME, ") R 1 (x"); }); });
  family.NextPid();
  family.NextPid();
  SignalDescendants(SIGTERM);
  for (int i = 0; i < 2; ++i) {
    int status = 0;
    ASSERT_GT(waitpid(-1, &status, 0), 0);
    EXPECT_EQ(WTERMSIG(status), SIGTERM);
  }
}

TEST(ProcessTree, AStoppedProcessSeesASignalThatAsksItToEnd) {
  Family family;
  family.Fork();
  const int pid = family.NextPid();
  kill(pid, SIGSTOP);
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, WUNTRACED), pid);
  ASSERT_TRUE(WIFSTOPPED(status));
  SignalDescendants(SIGTERM);
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
}

TEST(ProcessTree, AStoppedProcessStaysStoppedUnderOtherSignals) {
  Family family;
  family.Fork([] { signal(SIGUSR1, SIG_IGN); });
  const int pid = family.NextPid();
  kill(pid, SIGSTOP);
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, WUNTRACED), pid);
  SignalDescendants(SIGUSR1);
  EXPECT_EQ(waitpid(pid, &status, WCONTINUED | WNOHANG), 0);
}

TEST(ProcessTree, AStopReachesWhatIsForkedMeanwhile) {
  Family family;
  family.Fork([&] { family.Fork(); });
  const std::array<int, 2> said = {family.NextPid(), family.NextPid()};
  SignalDescendants(SIGSTOP);
  int status = 0;
  const int child = Descendants().front();
  ASSERT_EQ(waitpid(child, &status, WUNTRACED), child);
  EXPECT_TRUE(WIFSTOPPED(status));
  SignalDescendants(SIGCONT);
  EXPECT_EQ(waitpid(child, &status, WCONTINUED), child);
  EXPECT_TRUE(Contains(Descendants(), said[0]) && Contains(Descendants(), said[1]));
}

TEST(ProcessTree, WhatDoesNotEndIsGivenUpAndNamed) {
  Family family;
  family.Fork([] { prctl(PR_SET_NAME, "hanging"); });
  const int pid = family.NextPid();
  // What hangs in the kernel is as deaf to SIGKILL as this one is to a signal without an action.
  EXPECT_EQ(EndDescendants(SIGCONT, std::chrono::milliseconds(20)), std::vector<int>{pid});
  const std::string text = ProcessText(pid);
  EXPECT_EQ(text.find("pid " + std::to_string(pid) + " (hanging)"), 0u) << text;
  EXPECT_TRUE(EndDescendants(SIGKILL, std::chrono::seconds(30)).empty());
  EXPECT_EQ(ProcessText(pid), "pid " + std::to_string(pid)) << "it is gone";
}

TEST(ProcessTree, AnOrphanThatComesWhileOthersAreWaitedForIsEndedToo) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  Family family;
  std::array<int, 2> lifeline;
  ASSERT_EQ(pipe(lifeline.data()), 0);
  const int elder = fork();
  if (elder == 0) {
    // Deaf to TERM; ends when the grandchild, which does not exist yet, has ended.
    signal(SIGTERM, SIG_IGN);
    signal(SIGCHLD, SIG_IGN);
    family.Fork([] {
      signal(SIGTERM, [](int) {
        if (fork() != 0) _exit(0);
        signal(SIGTERM, SIG_DFL);
        sigset_t blocked;
        sigfillset(&blocked);
        sigprocmask(SIG_UNBLOCK, &blocked, nullptr);
        while (true) pause();
      });
    });
    close(lifeline[1]);
    char nothing = 0;
    _exit(read(lifeline[0], &nothing, 1) == 0 ? 0 : 1);
  }
  close(lifeline[1]);
  close(lifeline[0]);
  family.NextPid();
  EXPECT_TRUE(EndDescendants(SIGTERM, std::chrono::minutes(1)).empty());
}

TEST(ProcessTree, NothingToSignalIsFine) { SignalDescendants(SIGKILL); }

}  // namespace
}  // namespace muster
