#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/fakes/supervised_node.h"

// What keeps a node from its master, and how long that is borne.

namespace muster {
namespace {

using namespace std::chrono_literals;
using Phase = SupervisorPhase;
using Node = SupervisedNode;
using Notes = std::vector<std::string>;

// Attempts that all meet the same, until the node ends; how long that takes.
Duration UntilTheEnd(Node& node, Obstacle obstacle) {
  const Time begin = node.now;
  while (node.machine.phase() != Phase::kEnded) {
    node.Step(MasterLost{true, "10.0.0.1:29400: it is so", obstacle});
    if (node.machine.phase() == Phase::kEnded) break;
    node.now = node.machine.NextDeadline();
    node.Step(TimeCame{});
  }
  return node.now - begin;
}

TEST(SupervisorObstacle, APortThatThisNodeMayNotUseIsFinal) {
  Node node;
  node.Join();
  EXPECT_EQ(UntilTheEnd(node, Obstacle::kForbidden), 0s);
  EXPECT_EQ(EffectsText(node.effects), "End 78");
  EXPECT_EQ(node.TakeNotes().back(),
            "no master: 10.0.0.1:29400: it is so: choose a port above 1023 (--rdzv-endpoint)");
}

TEST(SupervisorObstacle, AnotherProgramAtTheEndpointIsFinalWhenItStays) {
  for (const auto& [obstacle, patience] :
       {std::pair(Obstacle::kForeign, 10s), {Obstacle::kSilent, 30s}}) {
    Node node;
    node.Join();
    const Duration spent = UntilTheEnd(node, obstacle);
    EXPECT_GE(spent, patience);
    EXPECT_LT(spent, patience + 5s) << "the longest time between two attempts";
    EXPECT_EQ(EffectsText(node.effects), "End 78");
    EXPECT_EQ(node.TakeNotes().back(),
              "no master: 10.0.0.1:29400: it is so: choose another port (--rdzv-endpoint)");
  }
}

TEST(SupervisorObstacle, NobodyElseIsBlamedOnceAMasterHasSpoken) {
  Node node;
  node.Join().Hear(Wait{"waiting for nodes: 1 of 2 are here", 10min});
  for (const Obstacle obstacle : {Obstacle::kForbidden, Obstacle::kForeign, Obstacle::kSilent}) {
    for (int attempt = 0; attempt < 20; ++attempt) {
      node.Step(MasterLost{true, "10.0.0.1:29400: it is so", obstacle});
      node.Pass(5s);
    }
    EXPECT_EQ(node.machine.phase(), Phase::kJoining);
  }
}

TEST(SupervisorObstacle, AMasterThatRefusesTheFirstWordsIsFinalInOneLine) {
  Node node;
  node.Join().TakeNotes();
  EXPECT_EQ(UntilTheEnd(node, Obstacle::kRefused), 0s);
  EXPECT_EQ(EffectsText(node.effects), "End 78");
  EXPECT_EQ(node.TakeNotes(),
            Notes{"no master: 10.0.0.1:29400: it is so: correct that, or run the same version of "
                  "muster on all nodes and as their master"});
}

TEST(SupervisorObstacle, WorkersOutliveAMasterThatRefusesTheirNodeButNotOneThatDropsItAgain) {
  const auto refuse = [](Node& node) {
    node.Step(MasterLost{false, "10.0.0.1:29400: it is so", Obstacle::kRefused});
    node.Pass(5s);
  };
  Node upgraded;
  upgraded.RunGeneration(1);
  refuse(upgraded);
  for (int attempt = 0; attempt < 20; ++attempt) refuse(upgraded);
  EXPECT_EQ(upgraded.machine.phase(), Phase::kRunning);

  Node dropped;
  dropped.RunGeneration(1);
  for (int attempt = 0; attempt < 3; ++attempt) {
    dropped.Hear(HeartbeatAck{0});
    refuse(dropped);
  }
  EXPECT_EQ(dropped.machine.phase(), Phase::kStopping);
  dropped.Exit(0, 0, false);
  EXPECT_EQ(dropped.Exit(1, 0, true), "CloseGeneration, End 78");
}

}  // namespace
}  // namespace muster
