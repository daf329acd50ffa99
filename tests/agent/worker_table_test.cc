#include "agent/worker_table.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(WorkerTable, FindsOnlyLocalRanksThatExist) {
  WorkerTable table;
  EXPECT_EQ(table.Find(0), nullptr);
  table.Reset(2);
  EXPECT_EQ(table.Find(-1), nullptr);
  EXPECT_NE(table.Find(1), nullptr);
  EXPECT_EQ(table.Find(2), nullptr);
}

TEST(WorkerTable, AWorkerThatEndedHasAlsoStarted) {
  WorkerTable table;
  table.Reset(2);
  table.Find(0)->state = Worker::State::kEnded;
  EXPECT_FALSE(table.AllStarted());
  table.Find(1)->state = Worker::State::kRunning;
  EXPECT_TRUE(table.AllStarted());
  EXPECT_FALSE(table.AllEnded());
}

TEST(WorkerTable, ReadyIsWhatAllHaveSaid) {
  WorkerTable table;
  table.Reset(2);
  table.Find(0)->is_ready = true;
  EXPECT_FALSE(table.AllReady());
  table.Find(1)->is_ready = true;
  EXPECT_TRUE(table.AllReady());
}

TEST(WorkerTable, ANewGenerationRemembersNothing) {
  WorkerTable table;
  table.Reset(1);
  table.Find(0)->state = Worker::State::kEnded;
  table.Find(0)->problem = "out of memory";
  table.Reset(1);
  EXPECT_EQ(table.Find(0)->state, Worker::State::kStarting);
  EXPECT_EQ(table.Find(0)->problem, "");
}

}  // namespace
}  // namespace muster
