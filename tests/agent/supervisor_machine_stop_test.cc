#include <gtest/gtest.h>

#include <csignal>
#include <string>

#include "tests/fakes/supervised_node.h"

// How workers fail, are stopped and leave nothing behind.

namespace muster {
namespace {

using namespace std::chrono_literals;
using Phase = SupervisorPhase;
using Node = SupervisedNode;

const WorkerFailed& Report(const Node& node) {
  return std::get<WorkerFailed>(std::get<SendToMaster>(node.effects.at(1)).message);
}

TEST(SupervisorStop, AFailureIsReportedStoppedAndAnsweredWithAFreshPort) {
  Node node;
  EXPECT_EQ(node.Step(Begin{}), "ReservePort");
  EXPECT_EQ(node.Step(PortReserved{4000, ""}), "OpenStream, send Hello{none, port 4000}");
  EXPECT_EQ(node.Hear(SecondNode(1)), "StartWorkers{1}");
  EXPECT_EQ(node.Step(WorkerSpawned{0, 100}), "-");
  EXPECT_EQ(node.Step(WorkerSpawned{1, 101}), "send WorkersStarted{1}");
  node.now += 2s;
  node.Step(WorkerSaid{1, "READY", "1"});
  node.Step(WorkerSaid{1, "ERROR", "out of memory"});
  node.now += 1s;
  EXPECT_EQ(node.Die(1, SIGKILL, false),
            "send WorkerFailed{1, rank 3, signal 9 (SIGKILL)}, TellWorkers ABORT=1, "
            "SignalTree TERM");
  const WorkerFailed report = Report(node);
  EXPECT_EQ(report.local_rank, 1);
  EXPECT_EQ(report.pid, 101);
  EXPECT_EQ(report.uptime, 3s);
  EXPECT_TRUE(report.was_ready);
  EXPECT_TRUE(report.can_restart);
  EXPECT_EQ(report.message, "out of memory");
  EXPECT_EQ(node.Die(0, SIGTERM, true), "CloseGeneration, ReservePort");
  EXPECT_EQ(node.Step(PortReserved{4001, ""}), "send WorkersStopped{1, port 4001}");
  EXPECT_EQ(node.Hear(SecondNode(2)), "StartWorkers{2}");
  EXPECT_FALSE(node.machine.outcome().failure) << "of an earlier generation";
}

TEST(SupervisorStop, AProgramThatCannotBeExecutedIsNotWorthARestart) {
  for (const int exit_code : {126, 127}) {
    Node node;
    node.Join().Hear(SecondNode(1));
    const std::string text = node.Step(SpawnFailed{0, exit_code, "cannot start ./no"});
    EXPECT_NE(text.find("exit code " + std::to_string(exit_code) + ", cannot restart}"),
              std::string::npos)
        << text;
    EXPECT_EQ(Report(node).message, "cannot start ./no");
    EXPECT_EQ(node.Step(SpawnFailed{1, exit_code, "cannot start ./no"}),
              "CloseGeneration, ReservePort");
  }
}

TEST(SupervisorStop, TheWantOfAProcessMayPass) {
  Node node;
  node.Join().Hear(SecondNode(1));
  EXPECT_EQ(node.Step(SpawnFailed{0, 71, "no process to be had"}),
            "send WorkerFailed{1, rank 2, exit code 71}, TellWorkers ABORT=1, SignalTree TERM");
  EXPECT_EQ(node.Step(WorkerSpawned{1, 101}), "-") << "the order to end is on its way already";
}

TEST(SupervisorStop, AWorkerThatDiesOfOurStopHasNotFailed) {
  Node node;
  node.RunGeneration(1).Hear(StopWorkers{1, "a node left"});
  EXPECT_EQ(node.Die(0, SIGTERM, false), "-");
  EXPECT_EQ(node.Exit(1, 1, true), "CloseGeneration, ReservePort");
  EXPECT_FALSE(node.machine.outcome().failure);
  EXPECT_TRUE(node.machine.outcome().workers[0].stopped_by_us);
  EXPECT_TRUE(node.machine.outcome().workers[1].stopped_by_us);
}

TEST(SupervisorStop, OnlyTheFirstFailureIsReported) {
  Node node;
  node.RunGeneration(1).Exit(0, 3, false);
  EXPECT_EQ(node.Die(1, SIGSEGV, true), "CloseGeneration, ReservePort");
  EXPECT_EQ(node.machine.outcome().failure->status, ExitStatus::Exited(3));
  EXPECT_FALSE(node.machine.outcome().workers[0].stopped_by_us);
}

TEST(SupervisorStop, WhatSucceededWorkersLeaveBehindGetsTermTheOrphanGraceAndKill) {
  Node node(NodeAlone());
  node.RunGeneration(1).Exit(0, 0, false);
  EXPECT_EQ(node.Exit(1, 0, false), "SignalTree TERM");
  EXPECT_EQ(node.Pass(500ms - 1ns), "-");
  EXPECT_EQ(node.Pass(1ns), "SignalTree KILL");
  EXPECT_EQ(node.Step(TreeEmptied{}), "CloseGeneration, ReservePort");
  EXPECT_EQ(node.Step(PortReserved{4001, ""}), "send WorkersSucceeded{1, port 4001}");
}

TEST(SupervisorStop, AfterTermComesTheGraceAndThenKill) {
  Node node(NodeAlone());
  node.RunGeneration(1);
  EXPECT_EQ(node.Exit(0, 1, false),
            "send WorkerFailed{1, rank 2, exit code 1}, TellWorkers ABORT=1, SignalTree TERM");
  EXPECT_EQ(node.Pass(30s - 1ns), "-");
  EXPECT_EQ(node.Pass(1ns), "SignalTree KILL");
  EXPECT_EQ(node.Die(1, SIGKILL, true), "CloseGeneration, ReservePort");
}

TEST(SupervisorStop, WhatOutlivesTheLastWorkerOfAStopGetsTheOrphanGraceOnly) {
  Node node(NodeAlone());
  node.RunGeneration(1).Exit(0, 1, false);
  node.Pass(2s);
  EXPECT_EQ(node.Die(1, SIGTERM, false), "-");
  EXPECT_EQ(node.Pass(500ms), "SignalTree KILL");
}

TEST(SupervisorStop, TheOrphanGraceNeverProlongsTheStop) {
  Node node(NodeAlone());
  node.RunGeneration(1).Exit(0, 1, false);
  node.Pass(29800ms);
  EXPECT_EQ(node.Die(1, SIGTERM, false), "-");
  EXPECT_EQ(node.Pass(200ms), "SignalTree KILL");
}

TEST(SupervisorStop, AfterKillTheLastWorkersEndDoesNotShortenThePatience) {
  Node node(NodeAlone());
  node.RunGeneration(1).Exit(0, 1, false);
  EXPECT_EQ(node.Pass(30s), "SignalTree KILL");
  EXPECT_EQ(node.Die(1, SIGKILL, false), "-") << "a descendant is still being torn down";
  EXPECT_EQ(node.Pass(10s - 1ns), "-");
  EXPECT_EQ(node.Step(TreeEmptied{}), "CloseGeneration, ReservePort");
}

TEST(SupervisorStop, AnAgentThatWasFrozenAfterKillListensBeforeItGivesUp) {
  Node node(NodeAlone());
  node.RunGeneration(1).Exit(0, 1, false);
  EXPECT_EQ(node.Pass(30s), "SignalTree KILL");
  node.now += 1min;
  EXPECT_EQ(node.Step(TimeCame{}), "-");
  EXPECT_EQ(node.Die(1, SIGKILL, true), "CloseGeneration, ReservePort");
}

TEST(SupervisorStop, WhatHangsInTheKernelIsNamedAndGivenUp) {
  Node node(NodeAlone());
  node.RunGeneration(1).Exit(0, 1, false);
  node.Pass(30s);
  node.TakeNotes();
  EXPECT_EQ(node.Pass(10s), "CloseGeneration, End 70");
  const auto notes = node.TakeNotes();
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0],
            "rank 3 (local rank 1), pid 101, does not die of SIGKILL: it hangs in the kernel; "
            "giving up on it");
  EXPECT_EQ(node.machine.outcome().workers.size(), 2u) << "for the report";
}

TEST(SupervisorStop, ADescendantThatHangsInTheKernelIsSaidAndGivenUp) {
  Node node(NodeAlone());
  node.RunGeneration(1).Exit(0, 0, false);
  node.Exit(1, 0, false);
  node.Pass(500ms);
  node.TakeNotes();
  EXPECT_EQ(node.Pass(10s), "CloseGeneration, End 70");
  EXPECT_EQ(node.TakeNotes().size(), 1u);
}

TEST(SupervisorStop, AnOrderToStopTurnsLeftoversOfSuccessIntoAStop) {
  Node node;
  node.RunGeneration(1).Exit(0, 0, false);
  node.Exit(1, 0, false);
  EXPECT_EQ(node.Hear(StopWorkers{1, "a node left"}), "-");
  EXPECT_EQ(node.Step(TreeEmptied{}), "CloseGeneration, ReservePort");
  EXPECT_EQ(node.Step(PortReserved{4001, ""}), "send WorkersStopped{1, port 4001}");
}

// ── Signals to the launcher
// ──────────────────────────────────────────────────────────────────────

TEST(SupervisorSignal, IsPassedOnAndTheNodeLeavesWith128PlusItsNumber) {
  Node node;
  EXPECT_EQ(node.RunGeneration(1).Signal(SIGINT),
            "send Leaving{1, SIGINT from pid 812}, SignalTree INT");
  node.Die(0, SIGINT, false);
  EXPECT_EQ(node.Die(1, SIGINT, true),
            "CloseGeneration, send WorkersStopped{1, port 0}, FinishRendezvous");
  EXPECT_EQ(node.Step(RendezvousDone{}), "End 130");
  EXPECT_EQ(node.machine.outcome().leaving_signal, SIGINT);
}

TEST(SupervisorSignal, TheFarewellIsWaitedForTwoSecondsAtMost) {
  Node node;
  node.Join();
  EXPECT_EQ(node.Signal(SIGTERM), "send Leaving{0, SIGTERM from pid 812}, FinishRendezvous");
  EXPECT_EQ(node.Pass(2s - 1ns), "-");
  EXPECT_EQ(node.Pass(1ns), "End 143");
}

TEST(SupervisorSignal, BeforeThePortIsThereNothingIsOpenedAnyMore) {
  Node node;
  node.Step(Begin{});
  node.Signal(SIGTERM);
  EXPECT_EQ(node.Step(PortReserved{4000, ""}), "-");
}

TEST(SupervisorSignal, ASecondOneWithinASecondCountsOnceAndAfterItKillsAtOnce) {
  Node node;
  node.RunGeneration(1).Signal(SIGTERM);
  node.now += 999ms;
  EXPECT_EQ(node.Signal(SIGTERM), "-");
  node.now += 1ms;
  EXPECT_EQ(node.Signal(SIGINT), "SignalTree KILL");
  EXPECT_EQ(node.Signal(SIGINT), "-") << "there is nothing stronger";
  node.Die(0, SIGKILL, false);
  node.Die(1, SIGKILL, true);
  EXPECT_EQ(node.Step(RendezvousDone{}), "End 143") << "of the first signal";
}

TEST(SupervisorSignal, ASecondOneDoesNotWaitForTheFarewell) {
  Node node;
  node.Join().Signal(SIGTERM);
  node.now += 1s;
  EXPECT_EQ(node.Signal(SIGTERM), "End 143");
}

TEST(SupervisorSignal, WhileStoppingIsPassedOnAndMakesTheNodeLeave) {
  Node node;
  node.RunGeneration(1).Exit(0, 1, false);
  EXPECT_EQ(node.Signal(SIGTERM), "send Leaving{1, SIGTERM from pid 812}, SignalTree TERM");
  EXPECT_EQ(node.Die(1, SIGTERM, true),
            "CloseGeneration, send WorkersStopped{1, port 0}, FinishRendezvous");
}

TEST(SupervisorSignal, AfterKillNothingWeakerIsSent) {
  Node node(NodeAlone());
  node.RunGeneration(1).Exit(0, 1, false);
  node.Pass(30s);
  EXPECT_EQ(node.Signal(SIGTERM), "send Leaving{1, SIGTERM from pid 812}");
}

TEST(SupervisorSignal, DuringTheExitBarrierEndsWithTheVerdictsCode) {
  Node node;
  node.Join().Hear(Verdict{false, 3, "rank 0 failed", "other", 0});
  EXPECT_EQ(node.Signal(SIGTERM), "End 3");
}

TEST(SupervisorSignal, AVerdictThatCrossesItGivesTheCodeButNoBarrierToWaitAt) {
  Node node;
  node.RunGeneration(1).Signal(SIGTERM);
  node.Hear(Verdict{false, 3, "rank 0 failed", "other", 0});
  node.Die(0, SIGTERM, false);
  EXPECT_EQ(node.Die(1, SIGTERM, true), "CloseGeneration, FinishRendezvous");
  EXPECT_EQ(node.Pass(2s), "End 3");
}

TEST(SupervisorSignal, ToBeForwardedChangesNothing) {
  Node node;
  node.RunGeneration(1);
  EXPECT_EQ(node.Step(SignalReceived{SIGUSR1, 0, true}), "SignalWorkers USR1");
  EXPECT_EQ(node.machine.phase(), Phase::kRunning);
}

TEST(SupervisorSignal, TheKernelIsNotNamedAsASender) {
  Node node;
  node.RunGeneration(1);
  EXPECT_EQ(node.Step(SignalReceived{SIGHUP, 0, false}), "send Leaving{1, SIGHUP}, SignalTree HUP");
}

// ── The warden
// ──────────────────────────────────────────────────────────────────────────────────

TEST(SupervisorWarden, ItsLossEndsTheNodeAndTheMasterHearsThatItLeaves) {
  Node node;
  EXPECT_EQ(node.RunGeneration(1).Step(WardenLost{}),
            "send Leaving{1, its warden is gone}, CloseGeneration, send WorkersStopped{1, port 0}, "
            "FinishRendezvous");
  EXPECT_EQ(node.Hear(SecondNode(2)), "-");
  EXPECT_EQ(node.Step(RendezvousDone{}), "End 70");
  EXPECT_EQ(node.machine.outcome().assignment.generation, 1);
}

TEST(SupervisorWarden, ItsLossAfterTheVerdictDoesNotChangeTheVerdict) {
  Node node;
  node.RunGeneration(1).Exit(0, 0, false);
  node.Exit(1, 0, true);
  node.ReservedPort().Hear(Verdict{true, 0, "", "", -1});
  EXPECT_EQ(node.Step(WardenLost{}), "-");
  EXPECT_EQ(node.Step(RendezvousDone{}), "End 0");
}

}  // namespace
}  // namespace muster
