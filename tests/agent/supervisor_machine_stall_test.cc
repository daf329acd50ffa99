#include <gtest/gtest.h>

#include <csignal>
#include <string>

#include "tests/fakes/supervised_node.h"

// What workers report of their progress, those that stop reporting, and exit codes that no restart
// can mend.

namespace muster {
namespace {

using namespace std::chrono_literals;
using Node = SupervisedNode;

Node WithStallTimeout(Duration limit) {
  SupervisorOptions options = NodeAlone();
  options.hello.settings.stall_timeout = limit;
  Node node(options);
  node.RunGeneration(1);
  return node;
}

TEST(SupervisorStall, AWorkerThatReportedAStepAndThenNothingIsInspectedAndKilled) {
  Node node = WithStallTimeout(30s);
  node.Step(WorkerSaid{0, "STEP", "7"});
  node.now += 10s;
  node.Step(WorkerSaid{0, "STEP", "8"});
  EXPECT_EQ(node.Pass(30s - 1ns), "-");
  EXPECT_EQ(node.Pass(1ns), "InspectWorker{0}, KillWorker{0}");
  EXPECT_EQ(node.Pass(1min), "-") << "once";
  EXPECT_EQ(node.Die(0, SIGKILL, false),
            "send WorkerFailed{1, rank 2, signal 9 (SIGKILL)}, TellWorkers ABORT=1, "
            "SignalTree TERM");
  EXPECT_EQ(node.machine.outcome().failure->message,
            "stalled: it reported STEP=8 and then nothing for 30s");
}

TEST(SupervisorStall, AWorkerThatNeverReportedAStepMayBeSilent) {
  Node node = WithStallTimeout(30s);
  node.Step(WorkerSaid{0, "READY", "1"});
  EXPECT_EQ(node.Pass(24h), "-");
  EXPECT_EQ(node.machine.NextDeadline(), kNever);
}

TEST(SupervisorStall, AnythingThatItSaysIsAReport) {
  Node node = WithStallTimeout(30s);
  node.Step(WorkerSaid{0, "STEP", "7"});
  node.Pass(29s);
  node.Step(WorkerSaid{0, "STATUS", "saving"});
  EXPECT_EQ(node.Pass(29s), "-");
  EXPECT_EQ(node.Pass(1s), "InspectWorker{0}, KillWorker{0}");
}

TEST(SupervisorStall, WithoutALimitNothingIsCounted) {
  Node node = WithStallTimeout(0s);
  node.Step(WorkerSaid{0, "STEP", "7"});
  EXPECT_EQ(node.machine.NextDeadline(), kNever);
}

TEST(SupervisorStall, AWorkerThatHasEndedOrIsBeingStoppedDoesNotStall) {
  Node node = WithStallTimeout(5s);
  node.Step(WorkerSaid{0, "STEP", "7"});
  node.Step(WorkerSaid{1, "STEP", "7"});
  node.Exit(0, 0, false);
  node.Signal(SIGTERM);
  EXPECT_EQ(node.Pass(10s), "-");
}

TEST(SupervisorStall, AnAgentThatWasFrozenJudgesNobodyByThatTime) {
  Node node = WithStallTimeout(5s);
  node.Step(WorkerSaid{0, "STEP", "7"});
  node.now += 1h;
  EXPECT_EQ(node.Step(TimeCame{}), "-");
  EXPECT_EQ(node.Pass(5s), "InspectWorker{0}, KillWorker{0}");
}

TEST(SupervisorStall, ANewGenerationBeginsAnew) {
  Node node = WithStallTimeout(5s);
  node.Step(WorkerSaid{0, "STEP", "7"});
  node.Exit(0, 1, false);
  node.Die(1, SIGTERM, true);
  node.ReservedPort();
  node.RunGeneration(2);
  EXPECT_EQ(node.Pass(1h), "-");
}

TEST(SupervisorFatal, AnExitCodeOfTheListCannotBeMendedByARestart) {
  SupervisorOptions options = NodeOfMany();
  options.hello.settings.fatal_exit_codes.Add(3);
  options.hello.settings.fatal_exit_codes.Add(128 + SIGSEGV);
  const auto after = [&options](ExitStatus status) {
    Node node(options);
    node.RunGeneration(1);
    node.Step(WorkerExited{0, status, false});
    return node.machine.outcome().failure->can_restart;
  };
  EXPECT_FALSE(after(ExitStatus::Exited(3)));
  EXPECT_FALSE(after(ExitStatus::Signalled(SIGSEGV)));
  EXPECT_TRUE(after(ExitStatus::Exited(4)));
}

TEST(SupervisorProgress, AHeartbeatTellsTheStepOfTheWorkerThatIsFurthestBehind) {
  Node node;
  node.RunGeneration(3);
  EXPECT_EQ(node.Pass(5s), "send Heartbeat{1}");
  node.Hear(HeartbeatAck{1});
  node.Step(WorkerSaid{0, "STEP", "1200"});
  node.Step(WorkerSaid{1, "STEP", "1199"});
  node.Step(WorkerSaid{1, "STEP", "half of it"});
  node.Pass(2s);
  node.Step(WorkerSaid{0, "STEP", "1201"});
  EXPECT_EQ(node.Pass(3s), "send Heartbeat{2, step 1199 of generation 3 since 5s}");
  node.Hear(HeartbeatAck{2});
  node.Hear(StopWorkers{3, "a node left"});
  EXPECT_EQ(node.Pass(5s), "send Heartbeat{3}") << "they are being stopped";
}

}  // namespace
}  // namespace muster
