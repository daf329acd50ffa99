#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <sstream>

#include "base/exit_status.h"
#include "tests/agent/warden_fixture.h"

// What a worker starts with, and what is heard of it.

namespace muster {
namespace {

using WardenSpawn = WardenTest;

// Sets the action of a signal for as long as it lives.
class Action {
 public:
  Action(int signal, void (*handler)(int)) : signal_(signal) {
    struct sigaction action {};
    action.sa_handler = handler;
    sigaction(signal, &action, &before_);
  }
  ~Action() { sigaction(signal_, &before_, nullptr); }

 private:
  int signal_;
  struct sigaction before_;
};

// The bits of SigIgn and SigBlk in /proc/self/status, as a worker prints them.
uint64_t SignalSet(const std::string& status, const std::string& name) {
  const size_t at = status.find(name + ":");
  EXPECT_NE(at, std::string::npos) << status;
  return std::stoull(status.substr(at + name.size() + 1), nullptr, 16);
}

uint64_t Bit(int signal) { return uint64_t{1} << (signal - 1); }

std::string Everything(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST_F(WardenSpawn, AWorkerRunsOnlyOnItsCpus) {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  uint32_t last = CPU_SETSIZE - 1;
  while (!CPU_ISSET(last, &allowed)) --last;
  Start();
  Output output;
  const std::string script = "grep Cpus_allowed_list /proc/self/status";
  Spawn({0, {"/bin/bash", "-c", script}, {}, 2, {last}}, output);
  EXPECT_EQ(output.Line(), "Cpus_allowed_list:\t" + std::to_string(last));
  Next<ExitedAnswer>();
  Output none;
  Spawn({0, {"/bin/true"}, {}, 2, {kCpusMax - 1}}, none);
  EXPECT_EQ(Next<NotStartedAnswer>().error, EINVAL);
}

TEST_F(WardenSpawn, OwnVariablesReplaceThoseOfTheAgentAndTheOthersStay) {
  setenv("MUSTER_TEST_KEPT", "kept", 1);
  setenv("MUSTER_TEST_REPLACED", "old", 1);
  Start();
  Output output;
  Bash(0, "echo $MUSTER_TEST_KEPT $MUSTER_TEST_REPLACED $MUSTER_TEST_NEW; env | grep -c REPLACED",
       output, {"MUSTER_TEST_REPLACED=new=er", "MUSTER_TEST_NEW=1"});
  EXPECT_EQ(output.All(), "kept new=er 1\n1\n");
}

TEST_F(WardenSpawn, AWorkerHasTheDescriptorLimitThatWasThereBefore) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit low{std::min<rlim_t>(before.rlim_max, 123), before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  Start();
  Output output;
  Bash(0, "ulimit -n; ulimit -Hn", output);
  EXPECT_EQ(output.Line(), std::to_string(low.rlim_cur));
  rlimit raised{};
  getrlimit(RLIMIT_NOFILE, &raised);
  EXPECT_EQ(raised.rlim_cur, before.rlim_max) << "for agent and warden";
}

TEST_F(WardenSpawn, AWorkerLeadsItsOwnSessionAndIsTheWardensChild) {
  Start();
  Output output;
  Bash(7,
       "read -r pid name state parent group session rest </proc/$$/stat; "
       "echo $pid $parent $group $session",
       output);
  const StartedAnswer started = Next<StartedAnswer>();
  EXPECT_EQ(started.id, 7u);
  const std::string pid = std::to_string(started.pid);
  EXPECT_EQ(output.All(),
            pid + " " + std::to_string(host_->warden_pid()) + " " + pid + " " + pid + "\n");
}

TEST_F(WardenSpawn, AWorkerHasItsThreeDescriptorsAndNoOther) {
  const UniqueFd leak(open("/dev/null", O_RDONLY));  // without O_CLOEXEC
  const UniqueFd kept(open("/dev/null", O_RDONLY));
  Start({std::chrono::milliseconds(200), {kept.get()}});
  Output first;
  Output second;
  const std::string list =
      "for fd in /proc/$$/fd/*; do [ -e $fd ] && echo -n ${fd##*/}' '; done; read line";
  const std::array<int, 2> in = [] {
    std::array<int, 2> ends;
    EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
    return ends;
  }();
  UniqueFd reader(in[0]);
  UniqueFd writer(in[1]);
  // The first one still runs, with its pipes, when the second one is started.
  host_->Spawn({0, {"/bin/bash", "-c", list}, {}, 3},
               {reader.get(), first.writer.get(), first.writer.get()});
  EXPECT_EQ(Next<StartedAnswer>().id, 0u);
  Bash(1, list + " <<<x", second);
  EXPECT_EQ(second.All(), "0 1 2 ");
  writer.reset();
  EXPECT_EQ(first.All(), "0 1 2 ");
}

TEST_F(WardenSpawn, ThreeDescriptorsBringStandardInputAndTwoLeaveTheAgents) {
  Start();
  std::array<int, 2> in;
  ASSERT_EQ(pipe2(in.data(), O_CLOEXEC), 0);
  UniqueFd reader(in[0]);
  UniqueFd writer(in[1]);
  Output fed;
  host_->Spawn({0, {"/bin/cat"}, {}, 3}, {reader.get(), fed.writer.get(), fed.writer.get()});
  ASSERT_EQ(write(writer.get(), "hello", 5), 5);
  writer.reset();
  EXPECT_EQ(fed.All(), "hello");

  Output inheriting;
  Spawn({1, {"/usr/bin/stat", "-L", "-c", "%d:%i", "/proc/self/fd/0"}, {}}, inheriting);
  struct stat own {};
  ASSERT_EQ(fstat(STDIN_FILENO, &own), 0);
  EXPECT_EQ(inheriting.All(), std::to_string(own.st_dev) + ":" + std::to_string(own.st_ino) + "\n");
}

TEST_F(WardenSpawn, StdoutAndStderrMayBeTwoThings) {
  Start();
  Output out;
  Output err;
  host_->Spawn({0, {"/bin/bash", "-c", "echo to out; echo to err >&2"}, {}},
               {out.writer.get(), err.writer.get()});
  EXPECT_EQ(out.All(), "to out\n");
  EXPECT_EQ(err.All(), "to err\n");
}

TEST_F(WardenSpawn, AnAgentWithoutStandardInputCostsNoWorkerItsOutput) {
  const UniqueFd own_input(fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3));
  close(STDIN_FILENO);
  Start();
  Output output;
  Bash(0, "echo here", output);
  EXPECT_EQ(output.All(), "here\n");
  host_.reset();  // its socket got the free number
  dup2(own_input.get(), STDIN_FILENO);
}

TEST_F(WardenSpawn, ExitCodesAndSignalsAreReported) {
  Start();
  Output output;
  Bash(0, "exit 7", output);
  Bash(1, "kill -KILL $$", output);
  Bash(2, "exit 0", output);
  std::array<ExitStatus, 3> ends;
  for (int i = 0; i < 3; ++i) {
    const ExitedAnswer exited = Next<ExitedAnswer>();
    ends.at(exited.id) = ExitStatus::FromWait(exited.wait_status);
    EXPECT_EQ(exited.tree_empty, i == 2) << "exactly when nothing is left";
  }
  EXPECT_EQ(ends[0], ExitStatus::Exited(7));
  EXPECT_EQ(ends[1], ExitStatus::Signalled(SIGKILL));
  EXPECT_EQ(ends[2], ExitStatus());
}

TEST_F(WardenSpawn, AProgramThatCannotBeExecutedIsAnsweredWithItsErrno) {
  Start();
  Output output;
  Spawn({3, {"/no/such/program"}, {}}, output);
  EXPECT_EQ(Next<NotStartedAnswer>(), (NotStartedAnswer{3, ENOENT, true}));
  Spawn({4, {"/etc/passwd"}, {}}, output);
  EXPECT_EQ(Next<NotStartedAnswer>(), (NotStartedAnswer{4, EACCES, true}));
  Spawn({5, {"/tmp"}, {}}, output);
  EXPECT_EQ(Next<NotStartedAnswer>(), (NotStartedAnswer{5, EACCES, true}));
  Bash(6, "exit 0", output);
  EXPECT_EQ(Next<ExitedAnswer>(), (ExitedAnswer{6, 0, true})) << "the others left nothing behind";
}

TEST_F(WardenSpawn, ADescriptorThatIsNotThereIsAnsweredLikeAFailedSpawn) {
  Start();
  host_->Spawn({3, {"/bin/true"}, {}}, {999, 999});
  EXPECT_EQ(Next<NotStartedAnswer>(), (NotStartedAnswer{3, EBADF, false}));
}

TEST_F(WardenSpawn, LongArgumentListsPassAndTooLongOnesAreAnswered) {
  Start();
  Output output;
  const std::string half(100'000, 'x');
  Spawn({0, {"/bin/bash", "-c", "echo ${#1} ${#2}", "name", half, half}, {}}, output);
  EXPECT_EQ(output.All(), "100000 100000\n");
  Output unused;
  Spawn({1, {"/bin/true", std::string(200'000, 'x')}, {}}, unused);
  EXPECT_EQ(Next<NotStartedAnswer>(), (NotStartedAnswer{1, E2BIG, true}))
      << "128 KiB is the kernel's limit for one";
}

TEST_F(WardenSpawn, ABurstOfWorkersIsAnsweredInOrder) {
  Start();
  constexpr uint32_t kWorkers = 64;
  Output output;
  const std::string big = "BIG=" + std::string(20'000, 'x');  // more than a socket holds, in sum
  for (uint32_t id = 0; id < kWorkers; ++id) Spawn({id, {"/bin/true"}, {big}}, output);
  for (uint32_t id = 0; id < kWorkers; ++id) EXPECT_EQ(Next<StartedAnswer>().id, id);
  std::vector<bool> ended(kWorkers, false);
  for (uint32_t i = 0; i < kWorkers; ++i) {
    const ExitedAnswer exited = Next<ExitedAnswer>();
    EXPECT_FALSE(ended.at(exited.id)) << "reaped twice";
    ended.at(exited.id) = true;
  }
}

TEST_F(WardenSpawn, InheritedIgnoredSignalsStayIgnoredAndAllOthersAreDefault) {
  const std::vector<int> usual = {SIGTERM, SIGINT,  SIGQUIT, SIGPIPE, SIGUSR1,
                                  SIGUSR2, SIGTSTP, SIGTTIN, SIGTTOU, SIGCHLD};
  std::vector<std::unique_ptr<Action>> actions;
  for (int signal : usual) actions.push_back(std::make_unique<Action>(signal, SIG_DFL));
  const Action nohup(SIGHUP, SIG_IGN);
  Start();
  Output output;
  Spawn({0, {"/bin/cat", "/proc/self/status"}, {}}, output);
  const uint64_t ignored = SignalSet(output.All(), "SigIgn");
  EXPECT_TRUE(ignored & Bit(SIGHUP));
  for (int signal : usual) EXPECT_FALSE(ignored & Bit(signal)) << SignalName(signal);
}

TEST_F(WardenSpawn, TheSignalMaskIsTheOneThatTheAgentStartedWith) {
  sigset_t before;
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR2);
  sigprocmask(SIG_SETMASK, &blocked, &before);
  Start();
  // What the agent blocks later, for its signalfd, is its own affair.
  sigaddset(&blocked, SIGTERM);
  sigprocmask(SIG_SETMASK, &blocked, nullptr);
  Output output;
  Spawn({0, {"/bin/cat", "/proc/self/status"}, {}}, output);
  EXPECT_EQ(SignalSet(output.All(), "SigBlk"), Bit(SIGUSR2));
  sigprocmask(SIG_SETMASK, &before, nullptr);
}

TEST_F(WardenSpawn, AnAgentThatWasStartedWithSigchldIgnoredStillHearsHowWorkersEnd) {
  const Action ignored(SIGCHLD, SIG_IGN);
  Start();
  Output output;
  Bash(0, "grep -q x <<<x; exit $?", output);
  EXPECT_EQ(Next<ExitedAnswer>(), (ExitedAnswer{0, 0, true}));
}

TEST_F(WardenSpawn, TheWardenHasASessionOfItsOwnAndHoldsNothingOfTheTerminal) {
  std::array<int, 2> terminal;
  ASSERT_EQ(pipe2(terminal.data(), 0), 0);
  const UniqueFd reader(terminal[0]);
  UniqueFd writer(terminal[1]);
  Start();
  Output output;
  Bash(0, "echo started; read line", output);
  EXPECT_EQ(output.Line(), "started");
  writer.reset();
  char byte;
  EXPECT_EQ(read(reader.get(), &byte, 1), 0) << "`muster | tee` must end when muster ends";
  EXPECT_EQ(getsid(host_->warden_pid()), host_->warden_pid());
}

TEST_F(WardenSpawn, WhatIsKeptForTheWardenStaysUntilItsTreeIsGone) {
  std::array<int, 2> lock;
  ASSERT_EQ(pipe2(lock.data(), O_CLOEXEC), 0);
  const UniqueFd reader(lock[0]);
  UniqueFd writer(lock[1]);
  Start({std::chrono::milliseconds(200), {writer.get()}});
  writer.reset();
  fcntl(reader.get(), F_SETFL, O_NONBLOCK);
  char byte;
  Output output;
  Bash(0, "echo started", output);
  EXPECT_EQ(output.All(), "started\n");
  EXPECT_EQ(read(reader.get(), &byte, 1), -1) << "still held";
  host_.reset();
  EXPECT_EQ(read(reader.get(), &byte, 1), 0) << "gone with the warden";
}

TEST_F(WardenSpawn, TheWardenHasLessThanAMegabyteOfItsOwn) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizer has megabytes of its own";
#endif
  Start();
  Output output;
  for (uint32_t id = 0; id < 16; ++id) Bash(id, "exit 0", output);
  for (uint32_t id = 0; id < 16; ++id) Next<ExitedAnswer>();
  std::istringstream lines(
      Everything("/proc/" + std::to_string(host_->warden_pid()) + "/smaps_rollup"));
  int private_kb = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("Private_", 0) == 0) private_kb += std::stoi(line.substr(line.find(':') + 1));
  }
  EXPECT_GT(private_kb, 0);
  EXPECT_LT(private_kb, 1024);
  RecordProperty("private_kb", private_kb);
}

}  // namespace
}  // namespace muster
