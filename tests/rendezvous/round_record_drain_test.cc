// A master dies while nodes are drained or excluded, and another goes on with what its store has.
#include <gtest/gtest.h>

#include <chrono>

#include "tests/rendezvous/round_record_fixture.h"

namespace muster {
namespace {

using namespace std::chrono_literals;

TEST_F(RoundRecordTest, ADrainGoesOnWhenAllMembersAreBack) {
  FormPair();
  job_.Step(DrainRequested{"b", "anna", 20s});
  job_.Restart();
  job_.Rejoin("a", WorkersPhase::kRunning);
  EXPECT_TRUE(job_.SentTo("a").empty());
  job_.Rejoin("b", WorkersPhase::kRunning);
  EXPECT_EQ(job_.LastSent<Drain>("a")->reason, "a node is drained by anna");
  EXPECT_TRUE(job_.LastSent<Drain>("b"));
  job_.Say("a", WorkersSucceeded{1, 30000, true});
  job_.Restart();
  job_.Rejoin("a", WorkersPhase::kSucceeded);
  job_.Rejoin("b", WorkersPhase::kRunning);
  EXPECT_TRUE(job_.LastSent<Drain>("b"));
  job_.Say("b", WorkersSucceeded{1, 30001, true});
  EXPECT_TRUE(job_.LastSent<Drained>("b"));
  EXPECT_EQ(phase(), RoundPhase::kForming);
  job_.Join("c");
  EXPECT_EQ(job_.machine().generation(), 2);
  EXPECT_EQ(job_.machine().restarts_used(), 0);
}

TEST_F(RoundRecordTest, ADrainHasAllItsTimeAgain) {
  FormPair();
  job_.Step(DrainRequested{"b", "anna", 20s});
  job_.Advance(19s);
  job_.Restart();
  job_.Rejoin("a", WorkersPhase::kRunning);
  job_.Advance(5s);
  job_.Rejoin("b", WorkersPhase::kRunning);
  job_.Advance(20s - 1ms);
  EXPECT_EQ(phase(), RoundPhase::kRunning);
  job_.Advance(1ms);
  EXPECT_EQ(phase(), RoundPhase::kStopping);
  EXPECT_EQ(job_.machine().reason().code, ReasonCode::kDrainCut);
}

TEST_F(RoundRecordTest, ADrainOfTheWholeJobEndsIt) {
  FormPair();
  job_.Step(DrainRequested{"", "anna"});
  job_.Restart();
  job_.Rejoin("a", WorkersPhase::kRunning);
  job_.Rejoin("b", WorkersPhase::kRunning);
  job_.Say("a", WorkersSucceeded{1, 30000, true});
  job_.Say("b", WorkersSucceeded{1, 30001, true});
  EXPECT_TRUE(job_.machine().verdict()->succeeded);
  EXPECT_EQ(job_.machine().reason().code, ReasonCode::kJobDrained);
}

TEST_F(RoundRecordTest, WhoWasLetGoAndHasNotHeardOfItIsToldAgain) {
  FormPair();
  job_.Step(DrainRequested{"b", "anna", 20s});
  job_.Say("a", WorkersSucceeded{1, 30000, true});
  job_.Say("b", WorkersSucceeded{1, 30001, true});
  job_.Break("b");
  job_.Rejoin("b", WorkersPhase::kNone);
  EXPECT_TRUE(job_.LastSent<Drained>("b"));
  job_.Restart();
  job_.Rejoin("b", WorkersPhase::kNone);
  EXPECT_TRUE(job_.LastSent<Drained>("b"));
}

TEST_F(RoundRecordTest, ANodeThatFailedTooOftenStaysExcluded) {
  job_.settings().max_node_failures = 1;
  job_.settings().node_failure_window = 60s;
  FormPair();
  job_.Join("c");
  job_.Failed("b", 1, 1min);
  job_.Stopped("a");
  job_.Stopped("b");
  ASSERT_LT(job_.node("b").group_rank, 0);
  job_.Advance(50s);
  job_.Restart();
  job_.Rejoin("a", WorkersPhase::kRunning);
  job_.Rejoin("c", WorkersPhase::kRunning);
  job_.Rejoin("b", WorkersPhase::kStopped);
  EXPECT_EQ(job_.node("b").wait_kind, WaitKind::kPardon);
  job_.Advance(60s - 1ms);
  EXPECT_TRUE(job_.node("b").excluded);
  job_.Advance(1ms);
  EXPECT_FALSE(job_.node("b").excluded);
}

TEST_F(RoundRecordTest, FailuresStayAsFarApartAsTheyWere) {
  job_.settings().max_node_failures = 2;
  job_.settings().node_failure_window = 60s;
  FormPair();
  const auto fail = [this] {
    job_.Failed("b", 1, 1min);
    job_.Stopped("a");
    job_.Stopped("b");
  };
  fail();
  job_.Advance(40s);
  fail();
  EXPECT_TRUE(job_.node("b").excluded);
  job_.Restart();
  job_.Rejoin("a", WorkersPhase::kRunning);
  job_.Rejoin("b", WorkersPhase::kRunning);
  job_.Advance(20s - 1ms);
  EXPECT_TRUE(job_.node("b").excluded);
  job_.Advance(1ms);
  EXPECT_FALSE(job_.node("b").excluded);
}

TEST_F(RoundRecordTest, ALossCountsAgainstItsNodeAlthoughTheMasterDiedBeforeTheOthersHadStopped) {
  job_.settings().max_node_failures = 1;
  FormPair();
  job_.Break("b");
  job_.Restart();
  job_.Rejoin("a", WorkersPhase::kRunning);
  job_.Join(NextProcessOf("b"));
  job_.Stopped("a");
  EXPECT_EQ(phase(), RoundPhase::kRunning);  // below MIN without it
  EXPECT_TRUE(job_.node("b").excluded);
}

}  // namespace
}  // namespace muster
