#include "rendezvous/status_watchers.h"

#include <gtest/gtest.h>

#include <string>

namespace muster {
namespace {

using namespace std::chrono_literals;

class StatusWatchersTest : public testing::Test {
 protected:
  void Add(WatcherId id, const std::string& job_id, bool once = false) {
    EXPECT_TRUE(watchers_.Add(id, {job_id, StatusDetail::kFull, once}, [this, id](const auto&) {
      told_ += std::to_string(id);
      return true;
    }));
  }
  // Who is told now, after so much time.
  std::string Told(Duration later = 1s) {
    now_ += later;
    told_.clear();
    for (const auto& [query, due] : watchers_.TakeDue(now_)) {
      for (const auto& [id, callback] : due) callback(nullptr);
    }
    return told_;
  }

  StatusWatchers watchers_;
  Time now_{1h};
  std::string told_;
};

TEST_F(StatusWatchersTest, ANewWatcherIsToldAtOnceAndThenAfterChanges) {
  EXPECT_EQ(watchers_.NextDeadline(), kNever);
  Add(1, "job");
  EXPECT_LE(watchers_.NextDeadline(), now_);
  EXPECT_EQ(Told(), "1");
  EXPECT_EQ(watchers_.NextDeadline(), kNever);
  watchers_.Resume(1);
  EXPECT_EQ(Told(), "");
  watchers_.Changed("job");
  EXPECT_EQ(Told(), "1");
}

TEST_F(StatusWatchersTest, OnlyTheJobThatIsWatchedMatters) {
  Add(1, "one");
  Add(2, "two");
  Add(3, "");
  Told();
  for (const WatcherId id : {1, 2, 3}) watchers_.Resume(id);
  watchers_.Changed("one");
  EXPECT_EQ(Told(), "31");
}

TEST_F(StatusWatchersTest, WhoHasNotTakenTheLastAnswerIsToldOnceItHas) {
  Add(1, "job");
  Told();
  watchers_.Changed("job");
  EXPECT_EQ(Told(), "");
  watchers_.Changed("job");
  watchers_.Resume(1);
  EXPECT_EQ(Told(), "1");
  watchers_.Resume(1);
  EXPECT_EQ(Told(), "");
}

TEST_F(StatusWatchersTest, WhoAsksOnceIsForgotten) {
  Add(1, "job", true);
  EXPECT_EQ(Told(), "1");
  EXPECT_TRUE(watchers_.empty());
}

TEST_F(StatusWatchersTest, ChangesThatFollowCloselyAreToldTogether) {
  Add(1, "job");
  Told();
  watchers_.Resume(1);
  watchers_.Changed("job");
  EXPECT_EQ(Told(StatusWatchers::kSpacing - 1ms), "");
  watchers_.Changed("job");
  EXPECT_EQ(watchers_.NextDeadline(), now_ + 1ms);
  EXPECT_EQ(Told(1ms), "1");
}

TEST_F(StatusWatchersTest, StepsAloneAreToldOnceInAWhile) {
  Add(1, "job");
  Told();
  watchers_.Resume(1);
  watchers_.Progressed(now_, "job");
  EXPECT_EQ(watchers_.NextDeadline(), now_ + StatusWatchers::kProgressSpacing);
  EXPECT_EQ(Told(2s), "");
  watchers_.Progressed(now_, "job");
  EXPECT_EQ(Told(StatusWatchers::kProgressSpacing - 2s), "1");
  watchers_.Resume(1);
  EXPECT_EQ(watchers_.NextDeadline(), kNever);
  watchers_.Progressed(now_, "job");
  watchers_.Changed("job");
  EXPECT_EQ(Told(StatusWatchers::kSpacing), "1") << "with other news at once";
}

TEST_F(StatusWatchersTest, WhatConcernsAllJobsIsToldToAll) {
  Add(1, "one");
  Add(2, "");
  Told();
  for (const WatcherId id : {1, 2}) watchers_.Resume(id);
  watchers_.AllChanged();
  EXPECT_EQ(Told(), "21");
}

TEST_F(StatusWatchersTest, TellingTakesASmallPartOfTheTime) {
  Add(1, "job");
  Told();
  watchers_.Told(now_, now_ + 50ms);
  watchers_.Resume(1);
  watchers_.Changed("job");
  EXPECT_EQ(watchers_.NextDeadline(), now_ + 50ms + 1s);
}

TEST_F(StatusWatchersTest, ThereIsALimit) {
  for (size_t i = 0; i < StatusWatchers::kMax; ++i) Add(i + 1, "job");
  EXPECT_FALSE(watchers_.Add(7777, {}, nullptr));
  watchers_.Remove(1);
  EXPECT_TRUE(watchers_.Add(7777, {}, nullptr));
}

}  // namespace
}  // namespace muster
