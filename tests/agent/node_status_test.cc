#include "agent/node_status.h"

#include <gtest/gtest.h>

#include <string>

#include "base/json_leaves.h"
#include "tests/fakes/supervised_node.h"

namespace muster {
namespace {

using namespace std::chrono_literals;

const NodeIdentity kNode{"digits", "node1", 812, 3};

SupervisedNode Training() {
  SupervisedNode node(NodeAlone());
  node.RunGeneration(2);
  node.Step(WorkerSaid{0, "READY", "1"});
  node.Step(WorkerSaid{0, "STEP", "120"});
  node.Step(WorkerSaid{1, "STEP", "119"});
  node.now += 3s;
  return node;
}

TEST(NodeStatus, ForPeopleItIsALineAndTheWorkers) {
  const SupervisedNode node = Training();
  const int pid = node.machine.workers().workers()[0].pid;
  const std::string table = NodeStatusTable(kNode, node.machine, node.now);
  EXPECT_EQ(table.substr(0, table.find('\n')),
            "digits: running: generation 2 of 2 workers on this node; step 119 3s ago; 0 of 3 "
            "restarts used; pid 812");
  EXPECT_NE(table.find("\nRANK    PID        STATE      STEP\n"), table.npos) << table;
  EXPECT_NE(table.find("\n2       " + std::to_string(pid)), table.npos) << table;
  EXPECT_NE(table.find(" ready      120\n"), table.npos) << table;
  EXPECT_NE(table.find(" running    119\n"), table.npos) << table;
}

TEST(NodeStatus, ForProgramsItIsOneObject) {
  SupervisedNode node = Training();
  JsonLeaves leaves = ReadJsonLeaves(NodeStatusJson(kNode, node.machine, node.now));
  EXPECT_TRUE(leaves.complete);
  EXPECT_EQ(leaves.values.at("job"), "digits");
  EXPECT_EQ(leaves.values.at("phase"), "running");
  EXPECT_EQ(leaves.values.at("generation"), "2");
  EXPECT_EQ(leaves.values.at("step"), "119");
  EXPECT_EQ(leaves.values.at("progress_ago_ms"), "3000");
  EXPECT_EQ(leaves.values.at("workers.0.state"), "ready");
  EXPECT_EQ(leaves.values.at("workers.1.rank"), "3");
  node.Exit(1, 0, false);
  leaves = ReadJsonLeaves(NodeStatusJson(kNode, node.machine, node.now));
  EXPECT_EQ(leaves.values.at("workers.1.state"), "ended");
}

TEST(NodeStatus, BeforeTheFirstGenerationThereIsLittleToTell) {
  const SupervisedNode node;
  EXPECT_TRUE(ReadJsonLeaves(NodeStatusJson(kNode, node.machine, node.now)).complete);
  EXPECT_NE(NodeStatusTable(kNode, node.machine, node.now).find("joining"), std::string::npos);
}

}  // namespace
}  // namespace muster
