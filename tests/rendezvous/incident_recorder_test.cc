#include "rendezvous/incident_recorder.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/rendezvous/test_job.h"

namespace muster {
namespace {

using namespace std::chrono_literals;

class IncidentRecorderTest : public testing::Test {
 protected:
  void Form(const JobSettings& settings, bool says_ready) {
    job_.emplace(settings);
    says_ready_ = says_ready;
    for (const char* name : {"a", "b"}) job_->Join(name);
    Work();
    job_->Advance(60s);
  }
  // Both say what workers of the current generation do that start well.
  void Work() {
    for (const char* name : {"a", "b"}) {
      job_->Say(name, WorkersStarted{job_->machine().generation()});
    }
    if (!says_ready_) return;
    for (const char* name : {"a", "b"}) {
      job_->Say(name, WorkersReady{job_->machine().generation()});
    }
  }
  const IncidentRecord& Last() const { return job_->journal().recorder().incidents().back(); }
  size_t Count() const { return job_->journal().recorder().incidents().size(); }

  std::optional<TestJob> job_;
  bool says_ready_ = false;
};

TEST_F(IncidentRecorderTest, EachPhaseOfARecoveryIsMeasuredAndTheyFollowEachOther) {
  Form(NodesFrom(2, 2, 3), true);
  const Time noticed = job_->now();
  job_->Failed("b", 3, 60s);
  job_->Advance(100ms);
  job_->Stopped("b");
  job_->Advance(2s);
  job_->Stopped("a");  // all have stopped: the next generation is assigned at once
  job_->Advance(30ms);
  job_->Say("a", WorkersStarted{2});
  EXPECT_FALSE(Last().start.has_value());
  job_->Say("b", WorkersStarted{2});
  job_->Say("a", WorkersReady{2});
  job_->Advance(4s);
  EXPECT_EQ(Last().outcome, IncidentOutcome::kOpen);
  job_->Say("b", WorkersReady{2});

  const IncidentRecord& record = Last();
  EXPECT_EQ(record.outcome, IncidentOutcome::kRecovered);
  EXPECT_EQ(record.number, 1u);
  EXPECT_EQ(record.generation, 1);
  EXPECT_EQ(record.next_generation, 2);
  EXPECT_EQ(Sentence(record.cause),
            Sentence({ReasonCode::kWorkerFailed, "b", 2, 0, "exit code 3"}));
  EXPECT_EQ(record.failed_node, "b");
  EXPECT_EQ(record.failed_rank, 2);
  EXPECT_EQ(record.failed_status, ExitStatus::Exited(3));
  EXPECT_EQ(record.kind, IncidentKind::kExit);
  EXPECT_TRUE(record.charged);
  EXPECT_EQ(record.detect, 0s);
  EXPECT_EQ(record.stop, 2100ms);
  EXPECT_EQ(record.rendezvous, 0s);
  EXPECT_EQ(record.start, 30ms);
  EXPECT_EQ(record.ready, 4s);
  EXPECT_EQ(record.total(), job_->now() - noticed);
  ASSERT_EQ(job_->news().size(), 2u);
  EXPECT_EQ(job_->news()[0].outcome, IncidentOutcome::kOpen);
  EXPECT_EQ(job_->news()[1], record);
}

TEST_F(IncidentRecorderTest, WorkersThatNeverSaidReadyAreAtWorkWhenTheyRun) {
  Form(NodesFrom(2, 2, 3), false);
  job_->Failed("b", 3, 60s);
  job_->Stopped("b");
  job_->Stopped("a");
  Work();
  EXPECT_EQ(Last().outcome, IncidentOutcome::kRecovered);
  EXPECT_EQ(Last().ready, std::nullopt);
}

TEST_F(IncidentRecorderTest, TheSilenceOfALostNodeIsTheTimeOfDetection) {
  JobSettings settings = NodesFrom(1, 2);
  settings.last_call = 30s;
  Form(settings, true);
  job_->Mute("b");
  job_->Advance(20s);
  EXPECT_EQ(Last().cause.code, ReasonCode::kNodeLostSilence);
  EXPECT_EQ(Last().kind, IncidentKind::kNodeLost);
  EXPECT_EQ(Last().detect, 15s);
  job_->Stopped("a");
  job_->Advance(30s);  // the last call for a successor
  job_->Say("a", WorkersStarted{2});
  job_->Say("a", WorkersReady{2});
  EXPECT_EQ(Last().outcome, IncidentOutcome::kRecovered);
  EXPECT_FALSE(Last().charged);
  EXPECT_TRUE(Last().failed_node.empty());
  EXPECT_EQ(Last().stop, 5s);
  EXPECT_EQ(Last().rendezvous, 25s);
}

TEST_F(IncidentRecorderTest, AFailureBeforeTheWorkersAreBackIsAnotherIncident) {
  Form(NodesFrom(2, 2, 3), true);
  job_->Failed("b", 3, 60s);
  job_->Stopped("b");
  job_->Stopped("a");
  job_->Say("a", WorkersStarted{2});
  job_->Failed("a", 4, 1s);
  ASSERT_EQ(Count(), 2u);
  EXPECT_EQ(job_->journal().recorder().incidents()[0].outcome, IncidentOutcome::kRepeated);
  EXPECT_EQ(Last().number, 2u);
  EXPECT_EQ(Last().generation, 2);
  job_->Stopped("a");
  job_->Stopped("b");
  Work();
  EXPECT_EQ(Last().outcome, IncidentOutcome::kRecovered);
}

TEST_F(IncidentRecorderTest, TheEndOfTheJobEndsTheIncidentThatCausedIt) {
  Form(NodesFrom(2, 2), false);
  job_->Failed("b", 3, 60s);
  job_->Advance(1s);
  job_->Stopped("b");
  job_->Stopped("a");
  EXPECT_EQ(Last().outcome, IncidentOutcome::kJobEnded);
  EXPECT_EQ(Last().stop, 1s);
  EXPECT_EQ(Last().rendezvous, std::nullopt);
  EXPECT_FALSE(Last().charged);
}

TEST_F(IncidentRecorderTest, ASuccessfulEndAndAnOperatorsStopAreNoIncidents) {
  Form(NodesFrom(2, 2), true);
  job_->Succeeded("a");
  job_->Succeeded("b");
  EXPECT_EQ(Count(), 0u);
  Form(NodesFrom(2, 2), true);
  job_->Step(StopRequested{"anna"});
  job_->Stopped("a");
  job_->Stopped("b");
  EXPECT_TRUE(job_->machine().verdict().has_value());
  EXPECT_EQ(Count(), 0u);
}

TEST_F(IncidentRecorderTest, SuccessOfTheNextGenerationIsRecovery) {
  Form(NodesFrom(2, 2, 1), true);
  job_->Failed("b", 3, 60s);
  job_->Stopped("b");
  job_->Stopped("a");
  job_->Succeeded("a");
  job_->Succeeded("b");
  EXPECT_EQ(Last().outcome, IncidentOutcome::kRecovered);
  EXPECT_TRUE(Last().ready.has_value());
}

TEST_F(IncidentRecorderTest, AFailureThatFollowsFromTheLossOfANodeIsOfThatKind) {
  Form(NodesFrom(2, 2, 3), false);
  job_->Failed("a", 5, 60s);  // its peer is gone, and the master hears of that later
  EXPECT_EQ(Last().kind, IncidentKind::kExit);
  job_->Break("b");
  EXPECT_EQ(Last().kind, IncidentKind::kNodeLost);
  job_->Stopped("a");
  job_->Rejoin("b", WorkersPhase::kStopped);
  EXPECT_EQ(Last().next_generation, 2);
  EXPECT_EQ(Last().kind, IncidentKind::kNodeLost);
  EXPECT_EQ(Last().cause.code, ReasonCode::kWorkerFailed);
  EXPECT_EQ(Last().failed_node, "a");
}

TEST_F(IncidentRecorderTest, KindsTellWhatWasAtTheBottom) {
  const auto fail = [this](ExitStatus status, bool out_of_memory) {
    Form(NodesFrom(2, 2, 3), false);
    WorkerFailed failed;
    failed.generation = 1;
    failed.rank = 2;
    failed.status = status;
    failed.evidence.out_of_memory = out_of_memory;
    job_->Say("b", failed);
    job_->Stopped("b");
    job_->Stopped("a");
    EXPECT_EQ(Last().next_generation, 2);
    return Last().kind;
  };
  EXPECT_EQ(fail(ExitStatus::Exited(3), false), IncidentKind::kExit);
  EXPECT_EQ(fail(ExitStatus::Signalled(11), false), IncidentKind::kSignal);
  EXPECT_EQ(fail(ExitStatus::Signalled(9), true), IncidentKind::kOutOfMemory);
  EXPECT_TRUE(Last().out_of_memory);
  Form(NodesFrom(2, 3), false);
  job_->Join("c");
  EXPECT_EQ(Last().kind, IncidentKind::kMembership);
  Form(NodesFrom(1, 2), false);
  job_->Say("b", Leaving{1, LeaveCause::kSignal, "SIGTERM"});
  job_->Stopped("b");
  job_->Stopped("a");
  EXPECT_EQ(Last().kind, IncidentKind::kMembership);
}

TEST_F(IncidentRecorderTest, OnlyTheLatestAreKept) {
  Form(NodesFrom(2, 2, 1000), false);
  for (size_t i = 0; i < IncidentRecorder::kKept + 5; ++i) {
    job_->Failed("b", 3, 60s);
    job_->Stopped("b");
    job_->Stopped("a");
    job_->Advance(60s);
    Work();
  }
  EXPECT_EQ(Count(), IncidentRecorder::kKept);
  EXPECT_EQ(Last().number, IncidentRecorder::kKept + 5);
}

TEST_F(IncidentRecorderTest, ATakenOverIncidentGoesOnWithoutThePhaseThatWasUnderWay) {
  Form(NodesFrom(2, 2, 3), false);
  job_->Failed("b", 3, 60s);
  job_->Advance(1s);
  IncidentRecorder successor(job_->machine(), {Last()});
  ASSERT_NE(successor.open(), nullptr);
  job_->Stopped("b");
  const RoundEffects effects = job_->Stopped("a");
  const MessageArrived last{job_->StreamOf("a"), WorkersStopped{1, 0}, ""};
  EXPECT_TRUE(successor.Observe(job_->now(), 0, job_->machine(), last, effects).empty());
  EXPECT_EQ(successor.open()->stop, std::nullopt);
  EXPECT_EQ(successor.open()->next_generation, 2);
  EXPECT_EQ(successor.open()->rendezvous, 0s);
}

TEST_F(IncidentRecorderTest, ATakenOverIncidentIsOverWhenAllWorkersRun) {
  Form(NodesFrom(2, 2, 3), true);
  job_->Failed("b", 3, 60s);
  job_->Stopped("b");
  job_->Stopped("a");
  job_->Say("a", WorkersStarted{2});
  job_->Say("a", WorkersReady{2});
  job_->Restart();
  EXPECT_EQ(Last().outcome, IncidentOutcome::kOpen);
  job_->Rejoin("a", WorkersPhase::kRunning);
  job_->Join("b");  // it has not heard of the generation
  EXPECT_EQ(Last().outcome, IncidentOutcome::kOpen);
  job_->Say("b", WorkersStarted{2});
  EXPECT_EQ(Last().outcome, IncidentOutcome::kRecovered);
  EXPECT_EQ(Last().number, 1u);
  EXPECT_EQ(Last().start, std::nullopt);
  job_->Failed("b", 3, 60s);
  EXPECT_EQ(Last().number, 2u);
}

TEST_F(IncidentRecorderTest, TheJournalCountsWhatTheMetricsTell) {
  Form(NodesFrom(2, 2, 3), true);
  job_->Failed("b", 3, 60s);
  job_->Stopped("b");
  job_->Stopped("a");
  Work();
  job_->Break("b");
  job_->Stopped("a");
  job_->Rejoin("b", WorkersPhase::kStopped);
  Work();
  const JobCounters& counters = job_->journal().counters();
  EXPECT_EQ(counters.generations.at("formed"), 1u);
  EXPECT_EQ(counters.generations.at("worker_failed"), 1u);
  EXPECT_EQ(counters.generations.at("node_lost_stream"), 1u);
  EXPECT_EQ(counters.worker_restarts.at("worker_failed"), 4u);
  EXPECT_EQ(counters.worker_exits.at("exit"), 1u);
  EXPECT_EQ(counters.recovery.count, 2u);
  EXPECT_EQ(counters.rendezvous.count, 3u);
}

}  // namespace
}  // namespace muster
