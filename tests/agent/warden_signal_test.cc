#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "base/exit_status.h"
#include "tests/agent/warden_fixture.h"

// Whom a signal reaches, and when nothing is left.

namespace muster {
namespace {

using WardenSignal = WardenTest;

// Prints the pids of a plain child, one in a session of its own, and one whose parent is gone, and
// stays. All of them run `task`.
std::string Family(const std::string& task) {
  return "bash -c 'echo $$; " + task + "' & setsid bash -c 'echo $$; " + task +
         "' & (setsid bash -c 'echo $$; " + task + "' & ) ; wait; " + task;
}

// Sleeps are processes that end by themselves should a test fail; no test waits for that.
constexpr const char* kSleep = "exec sleep 600";
constexpr const char* kDeafSleep = "trap \"\" TERM INT HUP; echo deaf; exec sleep 600";

// A child of the test itself, outside the warden's tree.
class Stranger {
 public:
  Stranger() : pid_(fork()) {
    if (pid_ == 0) {
      execl("/bin/sleep", "sleep", "600", nullptr);
      _exit(127);
    }
  }
  ~Stranger() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  bool IsAlive() const { return waitpid(pid_, nullptr, WNOHANG) == 0; }

 private:
  int pid_;
};

TEST_F(WardenSignal, TermReachesAllDescendantsWhereverTheyHid) {
  Start();
  Output output;
  Bash(0, Family(kSleep), output);
  const Watched family[] = {output.Process(), output.Process(), output.Process()};
  SignalTree(SIGTERM);
  for (const Watched& process : family) EXPECT_TRUE(process.Ends());
  const ExitedAnswer exited = Next<ExitedAnswer>();
  EXPECT_EQ(ExitStatus::FromWait(exited.wait_status), ExitStatus::Signalled(SIGTERM));
  if (!exited.tree_empty) Next<EmptyAnswer>();
}

TEST_F(WardenSignal, KillLeavesNothingNotEvenWhatIgnoresTerm) {
  Start();
  Output output;
  Bash(0, Family(kDeafSleep), output);
  std::vector<Watched> family;
  for (int deaf = 0; deaf < 3;) {
    const std::string line = output.Line();
    if (line == "deaf") {
      ++deaf;
    } else {
      family.emplace_back(std::stoi(line));
    }
  }
  ASSERT_EQ(family.size(), 3u);
  SignalTree(SIGTERM);
  EXPECT_EQ(ExitStatus::FromWait(Next<ExitedAnswer>().wait_status), ExitStatus::Signalled(SIGTERM))
      << "the worker itself did not ignore it";
  for (const Watched& process : family) EXPECT_TRUE(process.IsAlive());
  SignalTree(SIGKILL);
  Next<EmptyAnswer>();
  for (const Watched& process : family) EXPECT_FALSE(process.IsAlive());
}

// Four processes that fork up to 200 others each, all deaf to TERM and in sessions of their own,
// and say so half way: listing the tree then takes long enough for more to come.
constexpr const char* kBomb =
    "trap '' TERM; bomb() { for n in {1..200}; do setsid sleep 600 & [ $n = 40 ] && echo many; "
    "done; "
    "wait; }; for i in 1 2 3 4; do bomb & done; wait";

TEST_F(WardenSignal, KillCatchesWhatForksWhileItIsBeingKilled) {
  Start();
  Output output;
  Bash(0, kBomb, output);
  EXPECT_EQ(output.Line(), "many");
  SignalTree(SIGKILL);
  const ExitedAnswer exited = Next<ExitedAnswer>();
  if (!exited.tree_empty) Next<EmptyAnswer>();
  output.All();  // ends, for nobody holds the pipe any more
}

TEST_F(WardenSignal, AWeakerSignalDoesNotCallOffTheKilling) {
  Start();
  Output output;
  Bash(0, kBomb, output);
  EXPECT_EQ(output.Line(), "many");
  SignalTree(SIGKILL);
  SignalTree(SIGTERM);
  const ExitedAnswer exited = Next<ExitedAnswer>();
  if (!exited.tree_empty) Next<EmptyAnswer>();
}

TEST_F(WardenSignal, AStoppedWorkerDiesOfTerm) {
  Start();
  Output output;
  Bash(0, "echo $$; kill -STOP $$", output);
  const int pid = std::stoi(output.Line());
  // If TERM should come before the STOP, it is dead all the same; mostly it does not.
  SignalTree(SIGTERM);
  const ExitedAnswer exited = Next<ExitedAnswer>();
  EXPECT_EQ(ExitStatus::FromWait(exited.wait_status), ExitStatus::Signalled(SIGTERM));
  EXPECT_FALSE(Watched(pid).IsAlive());
}

TEST_F(WardenSignal, AFenceThatIsNotMovedKillsAllDescendants) {
  Start();
  Output output;
  Bash(0, Family(kSleep), output);
  const Watched family[] = {output.Process(), output.Process(), output.Process()};
  host_->SetFence({(EventLoop::Now() + std::chrono::hours(1)).time_since_epoch().count()});
  host_->SetFence({(EventLoop::Now() + std::chrono::milliseconds(50)).time_since_epoch().count()});
  for (const Watched& process : family) EXPECT_TRUE(process.Ends());
  const ExitedAnswer exited = Next<ExitedAnswer>();
  EXPECT_EQ(ExitStatus::FromWait(exited.wait_status), ExitStatus::Signalled(SIGKILL));
}

TEST_F(WardenSignal, ToTheWorkersOnlyIsNotForTheirChildren) {
  Start();
  Output output;
  Bash(0, "sleep 600 & trap 'echo worker' USR1; echo $!; while :; do wait; done", output);
  const Watched child = output.Process();
  host_->Signal({SIGUSR1, false});
  EXPECT_EQ(output.Line(), "worker");
  EXPECT_TRUE(child.IsAlive());
  SignalTree(SIGKILL);
  EXPECT_TRUE(child.Ends());
}

TEST_F(WardenSignal, ToOneWorkerLeavesTheOthersAlone) {
  Start();
  Output first;
  Output second;
  Bash(0, "echo $$; exec sleep 600", first);
  Bash(7, "echo $$; exec sleep 600", second);
  const Watched other = first.Process();
  const Watched one = second.Process();
  host_->Signal({SIGKILL, false, 7});
  EXPECT_TRUE(one.Ends());
  EXPECT_EQ(Next<ExitedAnswer>().id, 7u);
  EXPECT_TRUE(other.IsAlive());
  SignalTree(SIGKILL);
  EXPECT_TRUE(other.Ends());
}

TEST_F(WardenSignal, TheTreeIsEmptyExactlyWhenNothingIsLeft) {
  Start();
  std::array<int, 2> in;
  ASSERT_EQ(pipe2(in.data(), O_CLOEXEC), 0);
  UniqueFd reader(in[0]);
  UniqueFd writer(in[1]);
  Output output;
  // A descendant that lives until its standard input ends.
  host_->Spawn({0, {"/bin/bash", "-c", "setsid cat <&0 & exit 5"}, {}, 3},
               {reader.get(), output.writer.get(), output.writer.get()});
  reader.reset();
  const ExitedAnswer exited = Next<ExitedAnswer>();
  EXPECT_EQ(ExitStatus::FromWait(exited.wait_status), ExitStatus::Exited(5));
  EXPECT_FALSE(exited.tree_empty);
  Output second;
  Bash(1, "exit 0", second);
  EXPECT_EQ(Next<ExitedAnswer>(), (ExitedAnswer{1, 0, false}))
      << "the first one's child still runs";
  writer.reset();
  Next<EmptyAnswer>();
  Output third;
  Bash(2, "exit 0", third);
  EXPECT_EQ(Next<ExitedAnswer>(), (ExitedAnswer{2, 0, true}));
}

TEST_F(WardenSignal, AStrangerIsNeverSignalled) {
  Start();
  const Stranger stranger;
  Output output;
  Bash(0, "echo started; " + std::string(kSleep), output);
  EXPECT_EQ(output.Line(), "started");
  SignalTree(SIGKILL);
  Next<ExitedAnswer>();
  EXPECT_TRUE(stranger.IsAlive());
}

TEST_F(WardenSignal, TheWardenItselfIgnoresWhatATerminalOrAnOperatorSends) {
  Start();
  for (int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2, SIGTSTP}) {
    kill(host_->warden_pid(), signal);
  }
  Output output;
  Bash(0, "exit 0", output);
  EXPECT_EQ(Next<ExitedAnswer>(), (ExitedAnswer{0, 0, true}));
}

}  // namespace
}  // namespace muster
