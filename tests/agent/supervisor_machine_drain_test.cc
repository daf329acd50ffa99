#include <gtest/gtest.h>

#include "tests/fakes/supervised_node.h"

// Drains, commit points, and orders that come too late.

namespace muster {
namespace {

using Phase = SupervisorPhase;
using Node = SupervisedNode;

// Both workers exit with 0 and leave nothing.
void Succeed(Node& node) {
  node.Exit(0, 0, false);
  node.Exit(1, 0, true);
  node.ReservedPort();
}

TEST(SupervisorDrain, ADrainedNodeEndsWith0AndAcknowledges) {
  Node node;
  node.RunGeneration(1);
  EXPECT_EQ(node.Hear(Drain{1, "a node is drained by alice"}), "TellWorkers DRAIN=1");
  Succeed(node);
  EXPECT_EQ(node.Hear(Drained{"node is drained by alice"}), "FinishRendezvous");
  EXPECT_EQ(node.Step(RendezvousDone{}), "End 0");
}

TEST(SupervisorDrain, ACommitPointIsToldOnlyWhereNewcomersWaitForOne) {
  Node node;
  node.RunGeneration(1);
  EXPECT_EQ(node.Step(WorkerSaid{0, "CHECKPOINT", "/ckpt/a"}), "-");
  SupervisorOptions options = NodeOfMany();
  options.hello.settings.join_policy = JoinPolicy::kCheckpoint;
  Node told(options);
  told.RunGeneration(1);
  EXPECT_EQ(told.Step(WorkerSaid{0, "CHECKPOINT", "/ckpt/a"}), "send CommitPoint{1}");
  told.Hear(StopWorkers{1, "a node left"});
  EXPECT_EQ(told.Step(WorkerSaid{0, "CHECKPOINT", "/ckpt/a"}), "-");
}

TEST(SupervisorDrain, AnOrderForAnOlderGenerationIsIgnored) {
  Node node;
  node.RunGeneration(2);
  EXPECT_EQ(node.Hear(StopWorkers{1, "a node left"}), "-");
  EXPECT_EQ(node.Hear(Drain{1, "the operator asked"}), "-");
  EXPECT_EQ(node.Hear(SecondNode(1)), "-");
  EXPECT_EQ(node.machine.phase(), Phase::kRunning);
}

}  // namespace
}  // namespace muster
