#include <gtest/gtest.h>

#include <csignal>
#include <string>

#include "tests/fakes/supervised_node.h"

// Strict fencing, and an agent that was frozen until after its warden had killed the workers.

namespace muster {
namespace {

using namespace std::chrono_literals;
using Node = SupervisedNode;

SupervisorOptions StrictNode() {
  SupervisorOptions options = NodeOfMany();
  options.hello.settings.fencing = Fencing::kStrict;
  options.hello.settings.master_loss_timeout = 30s;
  return options;
}

TEST(SupervisorFence, WorkersThatTheFenceHasKilledDidNotFail) {
  Node node(StrictNode());
  node.RunGeneration(1);
  node.now += 1h;
  const std::string first = node.Die(0, SIGKILL, false);
  EXPECT_EQ(first.find("WorkerFailed"), std::string::npos) << first;
  const std::string last = node.Die(1, SIGKILL, true);
  EXPECT_EQ(last.find("WorkerFailed"), std::string::npos) << last;
  EXPECT_EQ(node.machine.phase(), SupervisorPhase::kJoining)
      << "it is there for the next generation";
}

TEST(SupervisorFence, TheMasterIsToldThatNobodyHadAskedForTheStop) {
  Node node(StrictNode());
  node.RunGeneration(1);
  node.now += 1h;
  node.Die(0, SIGKILL, false);
  node.Step(MasterLost{false, "connection reset"});
  EXPECT_NE(node.Pass(100ms).find("Hello{stopping 1 fenced"), std::string::npos);
  node.Die(1, SIGKILL, true);
  EXPECT_EQ(node.Step(PortReserved{4001, ""}), "send WorkersStopped{1, port 4001, fenced}");
  EXPECT_EQ(node.Hear(StopWorkers{1, "rank 2 failed"}), "send WorkersStopped{1, port 4001, fenced}")
      << "an order that comes later changes nothing";
  node.Step(MasterLost{false, "connection reset"});
  EXPECT_EQ(node.Pass(200ms),
            "OpenStream, send Hello{stopped 1 fenced, port 4001}, "
            "send WorkersStopped{1, port 4001, fenced}");
  node.Hear(SecondNode(2));
  node.Step(MasterLost{false, "connection reset"});
  EXPECT_NE(node.Pass(200ms).find("Hello{running 2, port"), std::string::npos)
      << "it belongs to its generation";
}

TEST(SupervisorFence, AWardenThatWasFrozenWithItsAgentIsToldToKillAtOnce) {
  Node node(StrictNode());
  node.RunGeneration(1);
  node.now += 1h;
  EXPECT_NE(node.Step(TimeCame{}).find("SignalTree KILL"), std::string::npos);
}

TEST(SupervisorFence, AnAssignmentThatWaitedForAFrozenAgentPastItsFenceStartsNothing) {
  Node node(StrictNode());
  node.Step(Begin{});
  node.Step(PortReserved{20000, ""});
  node.Step(FromMaster{Wait{"too few nodes", 1min}});
  node.now += 1h;
  Assignment place;
  place.generation = 1;
  const std::string effects = node.Step(FromMaster{place});
  EXPECT_EQ(effects.find("StartWorkers"), std::string::npos) << effects;
  EXPECT_NE(effects.find("Hello"), std::string::npos) << "which brings it again if it still holds";
  EXPECT_NE(node.Step(FromMaster{place}).find("StartWorkers"), std::string::npos);
}

}  // namespace
}  // namespace muster
