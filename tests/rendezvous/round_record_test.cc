// A master dies and another goes on with what its store has.
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "tests/rendezvous/round_record_fixture.h"

namespace muster {
namespace {

using namespace std::chrono_literals;

TEST_F(RoundRecordTest, NothingIsKeptOfAJobThatHasNotBegun) {
  job_.Join("a");
  EXPECT_EQ(job_.machine().Record(), std::nullopt);
  EXPECT_EQ(job_.writes(), 0);
}

TEST_F(RoundRecordTest, TheGenerationGoesOnWhenAllMembersAreBackAndNobodyIsTold) {
  FormPair();
  job_.Restart();
  EXPECT_EQ(phase(), RoundPhase::kRecovering);
  job_.Rejoin("b", WorkersPhase::kRunning);
  EXPECT_TRUE(job_.SentTo("b").empty());
  job_.Rejoin("a", WorkersPhase::kRunning);
  EXPECT_TRUE(job_.SentTo("a").empty());
  EXPECT_EQ(phase(), RoundPhase::kRunning);
  EXPECT_EQ(job_.machine().generation(), 1);
  EXPECT_EQ(job_.node("a").group_rank, 0);
  EXPECT_EQ(job_.node("b").group_rank, 1);
}

TEST_F(RoundRecordTest, WhoDoesNotComeBackIsLostAfterTheGraceAndThatIsNotCharged) {
  FormPair();
  job_.Restart();
  job_.Rejoin("a", WorkersPhase::kRunning);
  job_.Advance(10s - 1ms);
  EXPECT_EQ(phase(), RoundPhase::kRecovering);
  job_.Advance(1ms);
  EXPECT_EQ(job_.node("a").phase, WorkersPhase::kStopping);
  job_.Stopped("a");
  EXPECT_EQ(phase(), RoundPhase::kForming);
  job_.Join("c");
  EXPECT_EQ(phase(), RoundPhase::kRunning);
  EXPECT_EQ(job_.machine().generation(), 2);
  EXPECT_EQ(job_.machine().restarts_used(), 0);
  EXPECT_EQ(job_.node("a").group_rank, 0);
}

TEST_F(RoundRecordTest, AJobOfWhichNobodyComesBackEndsAfterTheJoinTimeout) {
  FormPair();
  job_.Restart();
  job_.Advance(job_.settings().join_timeout + 30s);
  EXPECT_EQ(job_.machine().verdict()->exit_code, 75);
}

TEST_F(RoundRecordTest, FreshNodesWaitMeanwhileAndAreToldWhy) {
  FormPair();
  job_.Restart();
  job_.Join("c");
  const auto wait = job_.LastSent<Wait>("c");
  ASSERT_TRUE(wait);
  EXPECT_EQ(wait->at_most, 10s);
  job_.Join("d");
  EXPECT_EQ(phase(), RoundPhase::kRecovering);
}

TEST_F(RoundRecordTest, AnAssignmentThatWasWrittenAndNotSentIsSentAgain) {
  FormPair();
  const Assignment place = job_.machine().seats()[1].assignment;
  job_.Restart();
  job_.Join("b");  // it has heard of nothing
  EXPECT_EQ(job_.LastSent<Assignment>("b"), place);
  job_.Join("a");
  EXPECT_TRUE(job_.LastSent<Assignment>("a"));
  EXPECT_EQ(phase(), RoundPhase::kRunning);
  EXPECT_EQ(job_.machine().generation(), 1);
}

TEST_F(RoundRecordTest, AnEndOfAGenerationThatWasWrittenAndNotToldIsToldAgain) {
  FormPair();
  job_.Failed("b", 1, 1min);
  job_.Restart();
  EXPECT_EQ(phase(), RoundPhase::kStopping);
  job_.Rejoin("a", WorkersPhase::kRunning);
  const auto order = job_.LastSent<StopWorkers>("a");
  ASSERT_TRUE(order);
  EXPECT_NE(order->reason.find("exit"), std::string::npos) << order->reason;
  job_.Stopped("a");
  job_.Rejoin("b", WorkersPhase::kStopped);
  EXPECT_EQ(phase(), RoundPhase::kRunning);
  EXPECT_EQ(job_.machine().generation(), 2);
  EXPECT_EQ(job_.machine().restarts_used(), 1);
}

TEST_F(RoundRecordTest, AFailureWhileNoMasterIsThereIsChargedOnce) {
  FormPair();
  job_.Restart();
  Hello hello = job_.HelloOf("b");
  hello.running = {WorkersPhase::kStopped, job_.machine().seats()[1].assignment};
  hello.running.failure.emplace();
  hello.running.failure->generation = 1;
  hello.running.failure->rank = 2;
  job_.Join(hello);
  job_.Rejoin("a", WorkersPhase::kRunning);
  EXPECT_TRUE(job_.LastSent<StopWorkers>("a"));
  job_.Restart();
  job_.Join(hello);
  job_.Rejoin("a", WorkersPhase::kStopped);
  EXPECT_EQ(job_.machine().restarts_used(), 1);
  EXPECT_EQ(job_.machine().generation(), 2);
}

TEST_F(RoundRecordTest, AFailureBesideAMemberThatStoppedForWantOfAMasterIsNotCharged) {
  FormPair(1);
  job_.Restart();
  Hello hello = job_.HelloOf("a");
  hello.running = {WorkersPhase::kStopped, job_.machine().seats()[0].assignment};
  hello.running.failure.emplace();  // its peer was gone
  hello.running.failure->generation = 1;
  job_.Join(hello);
  job_.Restart();
  job_.Rejoin("a", WorkersPhase::kStopped);
  job_.Rejoin("b", WorkersPhase::kStopped);
  EXPECT_EQ(job_.machine().generation(), 2) << "who was told to stop is no such member";
  EXPECT_EQ(job_.machine().restarts_used(), 1);
  job_.Restart();
  job_.Rejoin("b", WorkersPhase::kStopped, /*fenced=*/true);
  hello.running.assignment = job_.machine().seats()[0].assignment;
  hello.running.failure->generation = 2;
  job_.Join(hello);
  EXPECT_EQ(job_.machine().generation(), 3);
  EXPECT_EQ(job_.machine().restarts_used(), 1);
}

TEST_F(RoundRecordTest, TheBudgetThatIsUsedStaysUsed) {
  FormPair(1);
  job_.Failed("b", 7, 1min);
  job_.Stopped("a");
  job_.Stopped("b");
  ASSERT_EQ(job_.machine().restarts_used(), 1);
  job_.Restart();
  job_.Rejoin("a", WorkersPhase::kRunning);
  job_.Rejoin("b", WorkersPhase::kRunning);
  job_.Failed("b", 7, 1min);
  job_.Stopped("a");
  job_.Stopped("b");
  EXPECT_EQ(job_.machine().verdict()->exit_code, 7);
}

TEST_F(RoundRecordTest, TheRowOfQuickFailuresGoesOn) {
  job_.settings().max_start_failures = 2;
  FormPair(5);
  job_.Failed("b", 7, 1s);
  job_.Stopped("a");
  job_.Stopped("b");
  job_.Restart();
  job_.Rejoin("a", WorkersPhase::kRunning);
  job_.Rejoin("b", WorkersPhase::kRunning);
  job_.Failed("a", 7, 1s);
  job_.Stopped("a");
  job_.Stopped("b");
  EXPECT_EQ(phase(), RoundPhase::kClosed);
}

TEST_F(RoundRecordTest, ANewProcessOfAMemberEndsTheWaitAtOnce) {
  FormPair();
  job_.Restart();
  job_.Rejoin("a", WorkersPhase::kRunning);
  job_.Join(NextProcessOf("b"));
  EXPECT_TRUE(job_.LastSent<Wait>("b"));
  EXPECT_EQ(phase(), RoundPhase::kStopping);
  job_.Stopped("a");
  EXPECT_EQ(phase(), RoundPhase::kRunning);
  EXPECT_EQ(job_.node("b").group_rank, 1);
}

TEST_F(RoundRecordTest, ALastWillEndsTheWaitAtOnce) {
  FormPair();
  const uint64_t incarnation = job_.HelloOf("b").incarnation;
  job_.Restart();
  job_.Rejoin("a", WorkersPhase::kRunning);
  job_.Will({"job", "b", incarnation, 1});
  EXPECT_TRUE(job_.LastSent<StopWorkers>("a"));
  job_.Stopped("a");
  EXPECT_EQ(phase(), RoundPhase::kForming);
}

TEST_F(RoundRecordTest, AProcessThatWasReplacedStaysOut) {
  FormPair();
  const Hello older = job_.HelloOf("b");
  job_.Join(NextProcessOf("b"));
  job_.Restart();
  job_.Join(older);
  EXPECT_TRUE(job_.LastSent<Rejected>("b"));
}

TEST_F(RoundRecordTest, FormerMembersKeepTheirRanksAndASpareThatComesFirstWaitsForThem) {
  FormPair();
  job_.Failed("b", 1, 1min);
  job_.Stopped("a");
  job_.Break("b");  // its workers are as good as gone
  ASSERT_EQ(phase(), RoundPhase::kForming);
  job_.Restart();
  job_.Join("c");
  job_.Join("d");
  EXPECT_EQ(phase(), RoundPhase::kForming);
  job_.Rejoin("b", WorkersPhase::kStopped);
  job_.Rejoin("a", WorkersPhase::kStopped);
  EXPECT_EQ(phase(), RoundPhase::kRunning);
  EXPECT_EQ(job_.node("a").group_rank, 0);
  EXPECT_EQ(job_.node("b").group_rank, 1);
}

TEST_F(RoundRecordTest, SparesTakeThePlacesOfFormerMembersThatStayAway) {
  FormPair();
  job_.Break("b");
  job_.Stopped("a");
  ASSERT_EQ(phase(), RoundPhase::kForming);
  job_.Restart();
  job_.Join("c");
  job_.Join("d");
  job_.Advance(10s);
  EXPECT_EQ(phase(), RoundPhase::kRunning);
  EXPECT_EQ(job_.machine().generation(), 2);
}

TEST_F(RoundRecordTest, StrictFencingCountsFromTheNewMastersBeginning) {
  job_.settings().fencing = Fencing::kStrict;
  job_.settings().master_loss_timeout = 30s;
  FormPair();
  job_.Restart();
  job_.Rejoin("a", WorkersPhase::kRunning);
  job_.Advance(10s);
  job_.Stopped("a");
  job_.Join("c");
  job_.Advance(23s - 1ms);
  EXPECT_EQ(phase(), RoundPhase::kStopping);
  job_.Advance(1ms);
  EXPECT_EQ(phase(), RoundPhase::kRunning);
}

TEST_F(RoundRecordTest, AMemberThatHasFinishedAndGoneNeedNotComeBack) {
  FormPair();
  job_.Succeeded("b");
  job_.Break("b");
  job_.Restart();
  job_.Rejoin("a", WorkersPhase::kRunning);
  EXPECT_EQ(phase(), RoundPhase::kRunning);
  job_.Succeeded("a");
  EXPECT_TRUE(job_.machine().verdict()->succeeded);
}

TEST_F(RoundRecordTest, TheVerdictIsToldToWhoMissedIt) {
  FormPair(0);
  job_.Failed("b", 7, 1min);
  job_.Stopped("b");
  job_.Stopped("a");
  const Verdict verdict = *job_.machine().verdict();
  job_.Restart();
  EXPECT_TRUE(job_.machine().finished());
  Hello member = job_.HelloOf("a");
  member.running.phase = WorkersPhase::kNone;
  EXPECT_TRUE(job_.machine().WasPartOf(member));
  EXPECT_FALSE(job_.machine().WasPartOf(NextProcessOf("a")));
  job_.Rejoin("a", WorkersPhase::kStopped);
  EXPECT_EQ(job_.LastSent<Verdict>("a"), verdict);
}

TEST_F(RoundRecordTest, AJobThatEveryNodeLeavesEndsAlthoughTheMasterDiedMeanwhile) {
  FormPair();
  job_.Say("a", Leaving{1, LeaveCause::kSignal, "SIGTERM"});
  job_.Stopped("a");
  job_.Break("a");
  job_.Restart();
  job_.Rejoin("b", WorkersPhase::kStopping);
  job_.Say("b", Leaving{1, LeaveCause::kSignal, "SIGTERM"});
  job_.Stopped("b");
  EXPECT_EQ(job_.machine().verdict()->exit_code, 75);
}

TEST_F(RoundRecordTest, NumbersOfGenerationsThatWereHeardOfAreNotUsedAgain) {
  FormPair();
  Hello hello = job_.HelloOf("c");
  hello.running.phase = WorkersPhase::kStopped;
  hello.running.assignment.generation = 9;
  job_.Join(hello);
  job_.Restart();
  job_.Rejoin("a", WorkersPhase::kRunning);
  job_.Rejoin("b", WorkersPhase::kRunning);
  job_.Failed("b", 7, 1min);
  job_.Stopped("a");
  job_.Stopped("b");
  EXPECT_EQ(job_.machine().generation(), 10);
}

TEST_F(RoundRecordTest, OnlyRoundsMembershipsAndIncidentsAreWritten) {
  FormPair();
  EXPECT_EQ(job_.writes(), 1);  // the generation
  job_.Say("a", WorkersStarted{1});
  job_.Say("a", WorkersReady{1});
  job_.Advance(1h);  // hundreds of heartbeats
  job_.Rejoin("a", WorkersPhase::kRunning);
  job_.Join("spare");
  job_.Break("spare");
  EXPECT_EQ(job_.writes(), 1);
  job_.Failed("b", 7, 1min);
  EXPECT_EQ(job_.writes(), 2);  // the incident
  job_.Stopped("b");
  job_.Stopped("a");
  EXPECT_EQ(job_.writes(), 3);  // the next generation
}

}  // namespace
}  // namespace muster
