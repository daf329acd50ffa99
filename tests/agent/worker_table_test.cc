#include "agent/worker_table.h"

#include <gtest/gtest.h>

#include <chrono>

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

TEST(WorkerTable, TheSlowestIsWhoseStepIsLeastOfThoseThatHaveToldOne) {
  const Time start{std::chrono::hours(1)};
  const auto after = [start](int seconds) { return start + std::chrono::seconds(seconds); };
  WorkerTable table;
  table.Reset(3);
  EXPECT_FALSE(table.slowest().has_value());
  table.Reached(table.Find(0), 10, after(1));
  EXPECT_EQ(table.slowest()->step, 10);
  table.Reached(table.Find(1), 9, after(2));
  EXPECT_EQ(table.slowest()->step, 9);
  table.Reached(table.Find(0), 11, after(3));
  EXPECT_EQ(table.slowest()->step, 9);
  EXPECT_EQ(table.slowest()->since, after(2)) << "the one that is behind has not moved";
  table.Reached(table.Find(1), 30, after(4));
  EXPECT_EQ(table.slowest()->step, 11);
  EXPECT_EQ(table.slowest()->since, after(4));
  table.Find(0)->state = Worker::State::kEnded;
  table.Reached(table.Find(1), 31, after(5));
  EXPECT_EQ(table.slowest()->step, 31) << "who has ended is not waited for";
  table.Reset(3);
  EXPECT_FALSE(table.slowest().has_value());
}

}  // namespace
}  // namespace muster
