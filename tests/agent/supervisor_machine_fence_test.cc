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
