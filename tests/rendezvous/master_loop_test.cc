#include "rendezvous/master_loop.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/rendezvous/master_loop_fixture.h"

namespace muster {
namespace {

using namespace std::chrono_literals;

TEST_F(MasterLoopTest, StepsTheMachineAndLetsTheStreamReadOn) {
  FormPair();
  streams_.AwaitResumed(1, 1);
  streams_.AwaitResumed(2, 1);
  EXPECT_TRUE(HasDecided("job/generation_started"));
}

TEST_F(MasterLoopTest, ASilentMemberIsLostAtTheEndOfItsLeaseAndTheOthersStop) {
  const int64_t generation = FormPair();
  for (uint64_t beat = 1; beat <= 2; ++beat) {
    clock_.Advance(5s);
    Say(1, Heartbeat{beat});
    EXPECT_EQ(streams_.Await<HeartbeatAck>(1).sequence, beat);
  }
  clock_.Advance(5s - 1ms);
  EXPECT_FALSE(streams_.IsClosed(2));
  clock_.Advance(101ms);
  streams_.AwaitClosed(2);
  EXPECT_EQ(streams_.Await<StopWorkers>(1).generation, generation);
  EXPECT_FALSE(streams_.IsClosed(1));
  EXPECT_TRUE(HasDecided("job/node_lost_silence"));
}

TEST_F(MasterLoopTest, NobodyIsJudgedByTheTimeForWhichTheMasterWasFrozen) {
  FormPair();
  clock_.AwaitWaiter();
  clock_.Jump(10min);
  Say(1, Heartbeat{1});
  Say(2, Heartbeat{1});
  streams_.Await<HeartbeatAck>(1);
  streams_.Await<HeartbeatAck>(2);
  EXPECT_FALSE(streams_.IsClosed(1));
  EXPECT_FALSE(streams_.IsClosed(2));
  // From then on silence counts again.
  clock_.Advance(16s);
  streams_.AwaitClosed(1);
  streams_.AwaitClosed(2);
}

TEST_F(MasterLoopTest, WhatPiledUpWhileTheMasterWasFrozenIsHeardBeforeADeadlineIsJudged) {
  FormPair();
  clock_.AwaitWaiter();
  clock_.Jump(15s);  // to the very end of the lease: not late
  clock_.AwaitWaiter();
  Say(1, Heartbeat{1});
  Say(2, Heartbeat{1});
  streams_.Await<HeartbeatAck>(1);
  streams_.Await<HeartbeatAck>(2);
  clock_.Advance(5s);
  EXPECT_FALSE(streams_.IsClosed(1));
  EXPECT_FALSE(streams_.IsClosed(2));
}

TEST_F(MasterLoopTest, AStreamThatWasGivenUpWhileTheMasterWasFrozenIsNoLossWhenALaterOneIsThere) {
  FormPair();
  clock_.AwaitWaiter();
  clock_.Jump(10min);
  loop_->Post(StreamBroken{.stream = 2});
  Hello hello;
  hello.job_id = "job";
  hello.node_id = "b";
  hello.incarnation = 2;
  hello.attempt = 2;
  hello.settings.nodes_min = hello.settings.nodes_max = 2;
  hello.running = {.phase = WorkersPhase::kRunning, .assignment = {}};
  hello.running.assignment.generation = 1;
  hello.running.assignment.instance = 1;
  loop_->Post(StreamOpened{3});
  Say(3, hello);
  for (uint64_t beat = 1; beat <= 3; ++beat) {
    Say(1, Heartbeat{beat});
    Say(3, Heartbeat{beat});
    streams_.Await<HeartbeatAck>(1);
    streams_.Await<HeartbeatAck>(3);
    clock_.Advance(1s);
  }
  EXPECT_FALSE(HasDecided("job/node_lost_stream"));
}

TEST_F(MasterLoopTest, AStreamThatBrokeWhileTheMasterWasFrozenIsALossWhenItsAgentDoesNotComeBack) {
  const int64_t generation = FormPair();
  clock_.AwaitWaiter();
  clock_.Jump(10min);
  loop_->Post(StreamBroken{.stream = 2});
  for (uint64_t beat = 1; beat <= 10; ++beat) {
    Say(1, Heartbeat{beat});
    streams_.Await<HeartbeatAck>(1);
    EXPECT_FALSE(HasDecided("job/member_missing"));
    clock_.AwaitWaiter();
    clock_.Advance(1s);
  }
  clock_.Advance(2s);
  EXPECT_EQ(streams_.Await<StopWorkers>(1).generation, generation);
}

TEST_F(MasterLoopTest, ABrokenStreamIsALostMemberAtOnce) {
  const int64_t generation = FormPair();
  loop_->Post(StreamBroken{2, false});
  EXPECT_EQ(streams_.Await<StopWorkers>(1).generation, generation);
}

TEST_F(MasterLoopTest, TheStreamsOfAMasterThatRetiresAreNoLosses) {
  FormPair();
  const size_t sent = streams_.SentTo(2);
  loop_->Post(Retire{});
  loop_->Post(StreamBroken{1, false});
  std::promise<void> handled;
  loop_->Post(Ping{[&] { handled.set_value(); }});
  handled.get_future().wait();
  streams_.AwaitAllClosed();
  EXPECT_EQ(streams_.SentTo(2), sent);
  EXPECT_FALSE(HasDecided("job/node_lost_stream"));
}

TEST_F(MasterLoopTest, WhatComesAfterTheEndOfAStreamCountsForNothing) {
  loop_->Post(StreamOpened{1});
  loop_->Post(StreamBroken{1, false});
  Hello hello;
  hello.job_id = "job";
  hello.node_id = "ghost";
  Say(1, hello);
  Attend(2, "a", 1);
  EXPECT_EQ(streams_.Await<Assignment>(2).group_world_size, 1);
}

TEST_F(MasterLoopTest, TellsWhenNobodyNeedsItAnyMore) {
  const int64_t generation = FormPair();
  Mutex mutex;
  Condition changed;
  bool idle = false;
  loop_->Post(TellWhenIdle{[&] {
    MutexLock lock(&mutex);
    idle = true;
    changed.SignalAll();
  }});
  for (StreamId stream : {1, 2}) Say(stream, WorkersSucceeded{generation, 0});
  for (StreamId stream : {1, 2}) EXPECT_TRUE(streams_.Await<Verdict>(stream).succeeded);
  loop_->Post(StreamBroken{1, true});
  Say(2, Heartbeat{1});
  streams_.Await<HeartbeatAck>(2);
  {
    MutexLock lock(&mutex);
    EXPECT_FALSE(idle);
  }
  loop_->Post(StreamBroken{2, true});
  MutexLock lock(&mutex);
  while (!idle) changed.Wait(&mutex);
}

TEST_F(MasterLoopTest, AnOperatorEndsOneJob) {
  const int64_t generation = FormPair();
  const auto stop = [this](const std::string& job_id) {
    std::promise<absl::Status> answer;
    loop_->Post(JobCommand{job_id, StopRequested{"an operator"},
                           [&](absl::Status status) { answer.set_value(std::move(status)); }});
    return answer.get_future().get();
  };
  EXPECT_TRUE(absl::IsNotFound(stop("jib")));
  EXPECT_TRUE(stop("job").ok());
  for (StreamId stream : {1, 2}) {
    streams_.Await<StopWorkers>(stream);
    Say(stream, WorkersStopped{generation, 0});
  }
  EXPECT_FALSE(streams_.Await<Verdict>(1).succeeded);
  EXPECT_FALSE(streams_.Await<Verdict>(2).succeeded);
  EXPECT_TRUE(absl::IsFailedPrecondition(stop("job")));
}

TEST_F(MasterLoopTest, WhoHasNoRightToServeAnyMoreAnswersNobody) {
  const Time leads_until = clock_.Now() + 10s;
  MasterLoop::Options options;
  options.leads = [leads_until](Time now) { return now < leads_until; };
  Start(std::move(options));
  FormPair();
  Say(1, Heartbeat{1});
  streams_.Await<HeartbeatAck>(1);
  const size_t told = streams_.SentTo(2);
  clock_.Advance(10s);
  Say(2, Heartbeat{1});
  streams_.AwaitAllClosed();
  EXPECT_EQ(streams_.SentTo(2), told);
}

TEST_F(MasterLoopTest, AWatcherIsToldOfChangesAndNotOfHeartbeats) {
  FormPair();
  Mutex mutex;
  Condition changed;
  std::vector<RoundPhase> seen;
  loop_->Post(WatchStatus{1, {"job"}, [&](const auto& report) {
                            MutexLock lock(&mutex);
                            seen.push_back(report->jobs.at(0).status.phase);
                            changed.SignalAll();
                            return true;
                          }});
  const auto await = [&](size_t count) {
    MutexLock lock(&mutex);
    while (seen.size() < count) changed.Wait(&mutex);
    return seen;
  };
  // The loop has done all that came before.
  const auto beat = [&] {
    Say(1, Heartbeat{1});
    streams_.Await<HeartbeatAck>(1);
  };
  EXPECT_EQ(await(1), std::vector{RoundPhase::kRunning});
  loop_->Post(WatchResumed{1});
  beat();
  clock_.Advance(StatusWatchers::kSpacing);
  beat();
  beat();
  EXPECT_EQ(await(1).size(), 1u);
  Say(2, WorkersSucceeded{1, 0});
  EXPECT_EQ(await(2).back(), RoundPhase::kRunning);
  loop_->Post(WatchResumed{1});
  beat();
  clock_.Advance(StatusWatchers::kSpacing);
  Say(1, WorkersSucceeded{1, 0});
  EXPECT_EQ(await(3).back(), RoundPhase::kClosed);
}

TEST_F(MasterLoopTest, IncidentsAreHandedOnWhenTheyBeginAndWhenTheyEnd) {
  FormPair();
  loop_->Post(StreamBroken{2, false});
  streams_.Await<StopWorkers>(1);
  Say(1, WorkersStopped{1, 0});
  Attend(3, "b", 2);
  streams_.Await<Assignment>(3);
  Say(1, WorkersStarted{2});
  Say(3, WorkersStarted{2});
  streams_.AwaitResumed(3, 2);
  MutexLock lock(&mutex_);
  EXPECT_EQ(incidents_, (std::vector<std::string>{"job/node_lost_stream/open",
                                                  "job/node_lost_stream/recovered"}));
}

TEST_F(MasterLoopTest, StoppingDropsWhatComesLater) {
  FormPair();
  loop_->Stop();
  loop_->Post(StreamBroken{1, false});
  loop_->Stop();
}

}  // namespace
}  // namespace muster
