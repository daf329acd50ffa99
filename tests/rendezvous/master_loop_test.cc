#include "rendezvous/master_loop.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "tests/fakes/fake_clock.h"

namespace muster {
namespace {

using namespace std::chrono_literals;

// Remembers what the loop does with the streams.
class RecordedStreams : public AgentStreams {
 public:
  void Send(StreamId stream, const MasterMessage& message) override {
    MutexLock lock(&mutex_);
    sent_[stream].push_back(message);
    changed_.SignalAll();
  }
  void Close(StreamId stream) override {
    MutexLock lock(&mutex_);
    closed_.push_back(stream);
    changed_.SignalAll();
  }
  void Resume(StreamId stream) override {
    MutexLock lock(&mutex_);
    ++resumed_[stream];
    changed_.SignalAll();
  }

  // The first message of kind T that has not been taken yet; waits for it.
  template <typename T>
  T Await(StreamId stream) {
    MutexLock lock(&mutex_);
    for (;;) {
      std::vector<MasterMessage>& sent = sent_[stream];
      for (auto it = sent.begin(); it != sent.end(); ++it) {
        if (!std::holds_alternative<T>(*it)) continue;
        T found = std::get<T>(*it);
        sent.erase(sent.begin(), it + 1);
        return found;
      }
      changed_.Wait(&mutex_);
    }
  }
  void AwaitClosed(StreamId stream) {
    MutexLock lock(&mutex_);
    while (std::count(closed_.begin(), closed_.end(), stream) == 0) changed_.Wait(&mutex_);
  }
  void AwaitResumed(StreamId stream, int times) {
    MutexLock lock(&mutex_);
    while (resumed_[stream] < times) changed_.Wait(&mutex_);
  }
  bool IsClosed(StreamId stream) {
    MutexLock lock(&mutex_);
    return std::count(closed_.begin(), closed_.end(), stream) != 0;
  }

 private:
  Mutex mutex_;
  Condition changed_;
  std::map<StreamId, std::vector<MasterMessage>> sent_ ABSL_GUARDED_BY(mutex_);
  std::map<StreamId, int> resumed_ ABSL_GUARDED_BY(mutex_);
  std::vector<StreamId> closed_ ABSL_GUARDED_BY(mutex_);
};

class MasterLoopTest : public testing::Test {
 protected:
  MasterLoopTest() {
    MasterLoop::Options options;
    options.registry.on_violation = [](const std::string& what) { ADD_FAILURE() << what; };
    options.on_decision = [this](const std::string& job_id, const Reason& reason) {
      MutexLock lock(&mutex_);
      decisions_.push_back(job_id + "/" + Label(reason.code));
    };
    options.on_incident = [this](const std::string& job_id, uint64_t,
                                 const IncidentRecord& record) {
      MutexLock lock(&mutex_);
      incidents_.push_back(job_id + "/" + Label(record.cause.code) + "/" + Label(record.outcome));
    };
    loop_.emplace(&clock_, &streams_, std::move(options));
  }

  void Attend(StreamId stream, const std::string& node_id, int nodes) {
    Hello hello;
    hello.job_id = "job";
    hello.node_id = node_id;
    hello.incarnation = stream;
    hello.settings.nodes_min = hello.settings.nodes_max = nodes;
    hello.next_port = 20000;
    loop_->Post(StreamOpened{stream});
    Say(stream, hello);
  }
  void Say(StreamId stream, AgentMessage message) {
    loop_->Post(MessageArrived{stream, std::move(message), "127.0.0.1"});
  }
  int64_t FormPair() {
    Attend(1, "a", 2);
    Attend(2, "b", 2);
    streams_.Await<Assignment>(1);
    return streams_.Await<Assignment>(2).generation;
  }
  bool HasDecided(const std::string& what) {
    MutexLock lock(&mutex_);
    return std::count(decisions_.begin(), decisions_.end(), what) != 0;
  }

  FakeClock clock_;
  RecordedStreams streams_;
  Mutex mutex_;
  std::vector<std::string> decisions_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> incidents_ ABSL_GUARDED_BY(mutex_);
  std::optional<MasterLoop> loop_;
};

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

TEST_F(MasterLoopTest, AStreamThatBrokeWhileTheMasterWasFrozenIsALossASecondLater) {
  const int64_t generation = FormPair();
  clock_.AwaitWaiter();
  clock_.Jump(10min);
  loop_->Post(StreamBroken{.stream = 2});
  Say(1, Heartbeat{1});
  streams_.Await<HeartbeatAck>(1);
  clock_.Advance(1s);
  EXPECT_EQ(streams_.Await<StopWorkers>(1).generation, generation);
}

TEST_F(MasterLoopTest, ABrokenStreamIsALostMemberAtOnce) {
  const int64_t generation = FormPair();
  loop_->Post(StreamBroken{2, false});
  EXPECT_EQ(streams_.Await<StopWorkers>(1).generation, generation);
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
  FormPair();
  const auto stop = [this](const std::string& job_id) {
    std::promise<absl::Status> answer;
    loop_->Post(JobCommand{job_id, StopRequested{"an operator"},
                           [&](absl::Status status) { answer.set_value(std::move(status)); }});
    return answer.get_future().get();
  };
  EXPECT_TRUE(absl::IsNotFound(stop("jib")));
  EXPECT_TRUE(stop("job").ok());
  EXPECT_FALSE(streams_.Await<Verdict>(1).succeeded);
  EXPECT_FALSE(streams_.Await<Verdict>(2).succeeded);
  EXPECT_TRUE(absl::IsFailedPrecondition(stop("job")));
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
