#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <string>
#include <vector>

#include "tests/fakes/supervised_node.h"

// What the node does on the master's word, and without it.

namespace muster {
namespace {

using namespace std::chrono_literals;
using Phase = SupervisorPhase;
using Node = SupervisedNode;
using Notes = std::vector<std::string>;

const Verdict kFailed{false, 3, "rank 0 failed", "other", 0};
const Verdict kSucceeded{true, 0, "", "", -1};

// Both workers exit with 0 and leave nothing.
void Succeed(Node& node) {
  node.Exit(0, 0, false);
  node.Exit(1, 0, true);
  node.ReservedPort();
}

void Stop(Node& node) {
  node.Die(0, SIGTERM, false);
  node.Die(1, SIGTERM, true);
}

// Time passes with a master that acknowledges each heartbeat.
void PassWithMaster(Node& node, Duration span) {
  for (const Time end = node.now + span; node.now < end;) {
    node.Pass(std::min(5s, std::chrono::duration_cast<std::chrono::seconds>(end - node.now)));
    for (const SupervisorEffect& effect : SupervisorEffects(node.effects)) {
      const auto* sent = std::get_if<SendToMaster>(&effect);
      if (sent == nullptr) continue;
      if (const auto* heartbeat = std::get_if<Heartbeat>(&sent->message)) {
        node.Hear(HeartbeatAck{heartbeat->sequence});
      }
    }
  }
}

TEST(SupervisorMaster, AVerdictStopsTheWorkersAndBecomesTheExitCode) {
  Node node;
  EXPECT_EQ(node.RunGeneration(1).Hear(kFailed), "TellWorkers ABORT=1, SignalTree TERM");
  node.Die(0, SIGTERM, false);
  EXPECT_EQ(node.Die(1, SIGTERM, true), "CloseGeneration, FinishRendezvous");
  EXPECT_EQ(node.Step(RendezvousDone{}), "End 3");
  EXPECT_EQ(node.machine.outcome().verdict, kFailed);
}

TEST(SupervisorMaster, ASucceededNodeWaitsForTheVerdict) {
  Node node;
  node.RunGeneration(1);
  Succeed(node);
  PassWithMaster(node, 24h);
  EXPECT_EQ(node.machine.phase(), Phase::kSucceeded);
  EXPECT_EQ(node.Hear(kSucceeded), "FinishRendezvous");
  EXPECT_EQ(node.Step(RendezvousDone{}), "End 0");
}

TEST(SupervisorMaster, TheExitBarrierHasAnEnd) {
  Node node;
  node.Join().Hear(kFailed);
  EXPECT_EQ(node.Pass(5min - 1ns), "-");
  EXPECT_EQ(node.Pass(1ns), "End 3");
}

TEST(SupervisorMaster, AfterTheVerdictNothingIsObeyed) {
  Node node;
  node.Join().Hear(kFailed);
  node.TakeNotes();
  EXPECT_EQ(node.Hear(Rejected{77, "max_restarts differs"}), "-");
  EXPECT_EQ(node.Hear(Wait{"waiting for nodes", 1min}), "-");
  EXPECT_EQ(node.Hear(kSucceeded), "-");
  EXPECT_EQ(node.TakeNotes(), Notes());
  EXPECT_EQ(node.Step(RendezvousDone{}), "End 3");
}

TEST(SupervisorMaster, ANewerAssignmentWhileWorkersRunStopsThemFirst) {
  Node node;
  EXPECT_EQ(node.RunGeneration(1).Hear(SecondNode(2)), "TellWorkers ABORT=1, SignalTree TERM");
  EXPECT_EQ(node.Hear(SecondNode(2)), "-");
  Stop(node);
  EXPECT_EQ(node.Step(PortReserved{4001, ""}), "send WorkersStopped{1, port 4001}");
  EXPECT_EQ(node.Hear(SecondNode(2)), "StartWorkers{2}");
}

TEST(SupervisorMaster, ASucceededNodeAnswersAStopAndJoinsAgain) {
  Node node;
  node.RunGeneration(1);
  Succeed(node);
  EXPECT_EQ(node.Hear(StopWorkers{1, "a node left"}), "send WorkersStopped{1, port 4001}");
  EXPECT_EQ(node.Hear(SecondNode(2)), "StartWorkers{2}");
}

TEST(SupervisorMaster, AStopWhileThePortIsAwaitedIsAnsweredOnce) {
  Node node;
  node.RunGeneration(1);
  node.Exit(0, 0, false);
  node.Exit(1, 0, true);
  EXPECT_EQ(node.Hear(StopWorkers{1, "a node left"}), "-");
  EXPECT_EQ(node.Step(PortReserved{4001, ""}), "send WorkersStopped{1, port 4001}");
}

TEST(SupervisorMaster, ARejectedNodeEndsWithTheMastersCodeAndReason) {
  Node node;
  node.Join().TakeNotes();
  EXPECT_EQ(node.Hear(Rejected{78, "max_restarts is 3 in the job and 0 on this node"}), "End 78");
  EXPECT_EQ(node.TakeNotes(), Notes{"max_restarts is 3 in the job and 0 on this node"});
}

TEST(SupervisorMaster, ARejectedNodeStopsItsWorkersFirst) {
  Node node;
  EXPECT_EQ(node.RunGeneration(1).Hear(Rejected{77, "somebody else has this name"}),
            "TellWorkers ABORT=1, SignalTree TERM");
  node.Die(0, SIGTERM, false);
  EXPECT_EQ(node.Die(1, SIGTERM, true), "CloseGeneration, End 77");
}

TEST(SupervisorMaster, WithoutAPortTheNodeJoinsAllTheSameAndSaysWhy) {
  Node node;
  node.Step(Begin{});
  EXPECT_EQ(node.Step(PortReserved{0, "no port to be had"}),
            "OpenStream, send Hello{none, port 0}");
  EXPECT_EQ(node.TakeNotes(), Notes{"no port to be had"});
}

// ── Alone
// ───────────────────────────────────────────────────────────────────────────────────────

TEST(SupervisorAlone, WhileWorkersRunThereIsNothingToWakeUpFor) {
  Node node(NodeAlone());
  node.Step(Begin{});
  EXPECT_EQ(node.machine.NextDeadline(), kNever);
  node.ReservedPort();
  EXPECT_EQ(node.machine.NextDeadline(), kNever);
  node.RunGeneration(1);
  EXPECT_EQ(node.machine.NextDeadline(), kNever);
  node.Exit(0, 0, false);
  EXPECT_EQ(node.machine.NextDeadline(), kNever);
  node.Exit(1, 0, true);
  node.ReservedPort();
  EXPECT_EQ(node.machine.NextDeadline(), kNever);
}

// ── Without the master
// ──────────────────────────────────────────────────────────────────────────

TEST(SupervisorMasterLoss, TouchesNoWorkerUntilTermAndKillFitIntoTheTimeout) {
  Node node;
  node.RunGeneration(1);
  PassWithMaster(node, 10min);
  node.Step(MasterLost{false, "connection reset"});
  // Counted from the last heartbeat that was acknowledged, which was sent just now.
  node.now += 1h - 30s - 1ns;
  node.Step(TimeCame{});
  node.Step(MasterLost{true, "connection refused"});
  EXPECT_EQ(node.machine.phase(), Phase::kRunning);
  node.now += 1ns;
  EXPECT_EQ(node.Step(TimeCame{}), "TellWorkers ABORT=1, SignalTree TERM");
  node.Pass(30s - 1ns);
  EXPECT_EQ(EffectsText(node.effects).find("KILL"), std::string::npos);
  EXPECT_NE(node.Pass(1ns).find("SignalTree KILL"), std::string::npos);
  node.Die(0, SIGKILL, false);
  EXPECT_EQ(node.Die(1, SIGKILL, true), "CloseGeneration, End 69");
}

TEST(SupervisorMasterLoss, AShortTimeoutIsSharedByPatienceAndGrace) {
  SupervisorOptions options = NodeOfMany();
  options.hello.settings.master_loss_timeout = 30s;  // no longer than the grace
  Node node(options);
  node.RunGeneration(1).Step(MasterLost{false, "connection reset"});
  node.now += 15s;
  node.Step(TimeCame{});
  EXPECT_EQ(node.machine.phase(), Phase::kStopping);
  EXPECT_NE(node.Pass(15s).find("SignalTree KILL"), std::string::npos);
}

TEST(SupervisorMasterLoss, StrictFencingBindsTheWorkersToTheLastHeartbeatThatWasAnswered) {
  SupervisorOptions options = NodeOfMany();
  options.hello.settings.fencing = Fencing::kStrict;
  options.hello.settings.master_loss_timeout = 30s;
  Node node(options);
  EXPECT_EQ(node.machine.Fence(), kNever) << "nothing runs";
  node.RunGeneration(1);
  const Time born = node.machine.Fence();
  EXPECT_LE(born, node.now + 30s);
  PassWithMaster(node, 10s);
  EXPECT_EQ(node.machine.Fence(), born + 10s);
  node.Pass(10s);
  EXPECT_EQ(node.machine.Fence(), born + 10s) << "no answer, no more time";
}

TEST(SupervisorMasterLoss, AnAgentThatWasStoppedPastTheTimeoutKillsAtOnce) {
  Node node;
  node.RunGeneration(1).Step(MasterLost{false, "connection reset"});
  node.now += 2h;
  EXPECT_EQ(node.Step(TimeCame{}).rfind("TellWorkers ABORT=1, SignalTree TERM, SignalTree KILL", 0),
            0u);
}

TEST(SupervisorMasterLoss, ReAttachingTellsWhatRunsAndWhatWasMissed) {
  Node node;
  node.RunGeneration(1);
  node.Step(WorkerSaid{0, "READY", "1"});
  node.Step(WorkerSaid{1, "READY", "1"});
  node.Step(MasterLost{false, "connection reset"});
  EXPECT_EQ(node.Pass(100ms),
            "OpenStream, send Hello{running 1, port 4000}, send WorkersStarted{1}, "
            "send WorkersReady{1}");
  const auto& hello = std::get<Hello>(std::get<SendToMaster>(node.effects.at(1)).message);
  EXPECT_EQ(hello.running.assignment, SecondNode(1));

  node.Step(MasterLost{false, "connection reset"});
  node.Exit(0, 3, false);
  EXPECT_EQ(node.Pass(200ms),
            "OpenStream, send Hello{stopping 1, port 4000, WorkerFailed{1, rank 2, exit code 3}}");
  node.Step(MasterLost{false, "connection reset"});
  node.Die(1, SIGTERM, true);
  node.Step(PortReserved{4001, ""});
  EXPECT_EQ(node.Pass(400ms),
            "OpenStream, send Hello{stopped 1, port 4001, WorkerFailed{1, rank 2, exit code 3}}, "
            "send WorkersStopped{1, port 4001}");
  node.Hear(SecondNode(2));
  node.Step(MasterLost{false, "connection reset"});
  EXPECT_EQ(node.Pass(800ms), "OpenStream, send Hello{running 2, port 4001}")
      << "a failure belongs to its generation";
}

TEST(SupervisorMasterLoss, ReAttachingTellsOfSuccess) {
  Node node;
  node.RunGeneration(1).Step(MasterLost{false, "connection reset"});
  Succeed(node);
  EXPECT_EQ(node.Pass(100ms),
            "OpenStream, send Hello{succeeded 1, port 4001}, send WorkersSucceeded{1, port 4001}");
}

TEST(SupervisorMasterLoss, ReAttachingRepeatsThatTheNodeLeaves) {
  Node node;
  node.RunGeneration(1).Step(MasterLost{false, "connection reset"});
  node.Signal(SIGTERM);
  EXPECT_EQ(node.Pass(100ms),
            "OpenStream, send Hello{stopping 1, port 4000}, send Leaving{1, SIGTERM from pid 812}");
}

TEST(SupervisorMasterLoss, WhileJoiningEndsWith69WhenTheTimeToJoinIsOver) {
  Node node;
  node.Join();
  while (node.machine.phase() != Phase::kEnded) {
    node.Step(MasterLost{true, "10.0.0.1:29400: connection refused"});
    node.now = node.machine.NextDeadline();
    node.Step(TimeCame{});
  }
  EXPECT_EQ(EffectsText(node.effects), "End 69");
  EXPECT_EQ(node.now, Time(100h) + 10min);
  EXPECT_EQ(node.TakeNotes().back(),
            "no master: 10.0.0.1:29400: connection refused: start the node that has this address, "
            "or correct --rdzv-endpoint");
}

TEST(SupervisorMasterLoss, AMasterThatFallsSilentIsLostToo) {
  Node node;
  node.Join().Hear(Wait{"waiting for nodes: 1 of 2 are here", 10min});
  node.TakeNotes();
  node.Pass(20s);  // the first unanswered heartbeat was sent after 5 s
  const Notes notes = node.TakeNotes();
  EXPECT_EQ(std::count(notes.begin(), notes.end(),
                       "lost the master (10.0.0.1:29400 has not answered for 15s); trying again"),
            1);
  EXPECT_NE(node.Pass(10min).find("End 69"), std::string::npos);
}

TEST(SupervisorMasterLoss, TheReturnOfTheMasterIsSaidOnce) {
  Node node;
  node.RunGeneration(1).TakeNotes();
  node.Step(MasterLost{false, "connection reset"});
  node.Pass(100ms);
  node.Step(MasterLost{true, "connection refused"});
  node.Pass(200ms);
  node.Hear(HeartbeatAck{0});
  node.Hear(HeartbeatAck{0});
  EXPECT_EQ(node.TakeNotes(),
            (Notes{"lost the master (connection reset); trying again, the workers go on",
                   "connection refused", "the master is back"}));
}

// ── Why nothing happens
// ─────────────────────────────────────────────────────────────────────────

TEST(SupervisorWait, ReasonIsSaidWhenItChangesAndThenNowAndAgain) {
  Node node;
  node.Join().TakeNotes();
  node.Hear(Wait{"waiting for nodes: 1 of 3 are here", 10min});
  node.Hear(Wait{"waiting for nodes: 1 of 3 are here", 10min});
  EXPECT_EQ(node.TakeNotes(), Notes{"waiting for nodes: 1 of 3 are here"});
  PassWithMaster(node, 5s);
  EXPECT_EQ(node.TakeNotes(),
            Notes{"still waiting: 10.0.0.1:29400: waiting for nodes: 1 of 3 are here"});
  PassWithMaster(node, 5s);
  EXPECT_EQ(node.TakeNotes(), Notes());
  PassWithMaster(node, 5s);
  EXPECT_EQ(node.TakeNotes(),
            Notes{"still waiting: 10.0.0.1:29400: waiting for nodes: 1 of 3 are here"});
  node.Hear(SecondNode(1));
  node.TakeNotes();
  PassWithMaster(node, 1min);
  EXPECT_EQ(node.TakeNotes(), Notes());
}

TEST(SupervisorWait, WithoutAnAnswerThatIsSaid) {
  Node node;
  node.Join().Pass(5s);
  EXPECT_EQ(node.TakeNotes(), Notes{"still waiting: no word yet from 10.0.0.1:29400"});
}

TEST(SupervisorWait, AReasonThatWasGivenDuringTheStopIsRepeatedAfterIt) {
  Node node;
  node.RunGeneration(1).Hear(StopWorkers{1, "a node left"});
  node.Hear(Wait{"stopping: 1 of 2 members have stopped", 1min});
  Stop(node);
  node.ReservedPort().TakeNotes();
  PassWithMaster(node, 5s);
  EXPECT_EQ(node.TakeNotes(),
            Notes{"still waiting: 10.0.0.1:29400: stopping: 1 of 2 members have stopped"});
}

TEST(SupervisorWait, ASucceededNodeThatMustJoinAgainSaysThatItWaits) {
  Node node;
  node.RunGeneration(1);
  Succeed(node);
  node.Hear(StopWorkers{1, "a node left"});
  node.Hear(Wait{"waiting for nodes: 1 of 2 are here", 10min});
  node.TakeNotes();
  PassWithMaster(node, 5s);
  EXPECT_EQ(node.TakeNotes(),
            Notes{"still waiting: 10.0.0.1:29400: waiting for nodes: 1 of 2 are here"});
}

}  // namespace
}  // namespace muster
