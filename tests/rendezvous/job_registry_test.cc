#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/rendezvous/job_registry_fixture.h"

namespace muster {
namespace {

using namespace std::chrono_literals;

TEST_F(JobRegistryTest, JobsDoNotSeeEachOther) {
  EXPECT_NE(Only<Wait>(Say(1, HelloOf("one", "a", 1, 2))), nullptr);
  EXPECT_NE(Only<Assignment>(Say(2, HelloOf("two", "a", 2))), nullptr);
  EXPECT_TRUE(To(1).empty());
  EXPECT_EQ(all_.front().job_id, "two");
  EXPECT_EQ(registry_.Find("one")->phase(), RoundPhase::kForming);
  EXPECT_EQ(registry_.Find("two")->phase(), RoundPhase::kRunning);
  EXPECT_EQ(registry_.Find("three"), nullptr);
}

TEST_F(JobRegistryTest, AFirstMessageThatIsNoHelloClosesTheStream) {
  Say(1, Heartbeat{1});
  EXPECT_TRUE(Closes(1));
  Say(2, LastWill{"unknown", "a", 1, 1});
  EXPECT_TRUE(Closes(2));
}

TEST_F(JobRegistryTest, TheLagOfAHeartbeatIsWhatItComesLaterThanItsInterval) {
  Say(1, HelloOf("one", "a", 1));
  Say(2, HelloOf("two", "a", 2));
  now_ += 5s;
  Say(1, Heartbeat{1});
  EXPECT_EQ(registry_.heartbeat_lag().sum, 0);
  now_ += 1s;
  Say(2, Heartbeat{1});
  now_ += 4500ms;
  Say(1, Heartbeat{2});
  EXPECT_EQ(registry_.heartbeat_lag().count, 3u);
  EXPECT_EQ(registry_.heartbeat_lag().sum, 1.5);
}

TEST_F(JobRegistryTest, ANewAgentOfAFinishedJobOpensANewInstance) {
  Say(1, HelloOf("job", "a", 1));
  const uint64_t first = registry_.Find("job")->instance();
  EndJob(1, "job");
  EXPECT_FALSE(registry_.idle());

  const std::vector<MasterMessage> answer = Say(2, HelloOf("job", "a", 2));
  ASSERT_NE(Only<Assignment>(answer), nullptr);
  EXPECT_EQ(Only<Assignment>(answer)->instance, first + 1);
  EXPECT_EQ(Only<Assignment>(answer)->generation, 2) << "no number tells a save of two instances";
  EXPECT_EQ(registry_.Find("job")->instance(), first + 1);
}

TEST_F(JobRegistryTest, AnAgentOfAFinishedJobIsToldTheVerdictAlsoWhenANewInstanceRuns) {
  Say(1, HelloOf("job", "a", 1));
  EndJob(1, "job");
  registry_.Step(now_, StreamBroken{1, false});
  EXPECT_NE(Only<Verdict>(Say(2, HelloOf("job", "a", 1))), nullptr);
  Say(3, HelloOf("job", "b", 9));
  registry_.Step(now_, StreamBroken{2, false});
  EXPECT_NE(Only<Verdict>(Say(4, HelloOf("job", "a", 1))), nullptr);
  EXPECT_EQ(registry_.Find("job")->phase(), RoundPhase::kRunning);
}

TEST_F(JobRegistryTest, IsIdleWhenEveryJobHasEndedAndItsAgentsKnow) {
  EXPECT_TRUE(registry_.idle());
  Say(1, HelloOf("job", "a", 1));
  EXPECT_FALSE(registry_.idle());
  EndJob(1, "job");
  registry_.Step(now_, StreamBroken{1, true});
  EXPECT_TRUE(registry_.idle());
  EXPECT_EQ(registry_.NextDeadline(), kNever);
}

TEST_F(JobRegistryTest, AnInstanceThatRunsSomewhereKeepsItsNumberAtANewMaster) {
  Hello hello = HelloOf("job", "a", 1, 2);
  hello.running.phase = WorkersPhase::kRunning;
  hello.running.assignment.instance = 7;
  hello.running.assignment.generation = 4;
  hello.running.assignment.group_world_size = 2;
  hello.running.assignment.world_size = 2;
  Say(1, hello);
  EXPECT_EQ(registry_.Find("job")->instance(), 7u);
  EXPECT_EQ(registry_.Find("job")->phase(), RoundPhase::kRecovering);

  Say(2, HelloOf("other", "a", 2, 2));
  Hello other = HelloOf("other", "b", 3, 2);
  other.running = hello.running;
  other.running.assignment.instance = 3;
  other.running.assignment.group_rank = 1;
  Say(3, other);
  EXPECT_EQ(registry_.Find("other")->phase(), RoundPhase::kRecovering);
}

TEST_F(JobRegistryTest, DeadlinesGoToTheJobsTheyBelongTo) {
  Say(1, HelloOf("early", "a", 1, 2));
  now_ += 5s;
  Say(2, HelloOf("late", "a", 2, 2));
  now_ = Time(1h) + 15s;
  all_ = registry_.Step(now_, DeadlinePassed{});
  EXPECT_TRUE(Closes(1));
  EXPECT_FALSE(Closes(2));
  EXPECT_GT(registry_.NextDeadline(), now_);
}

TEST_F(JobRegistryTest, OneJobCanBeStopped) {
  Say(1, HelloOf("job", "a", 1));
  Say(2, HelloOf("other", "a", 2));
  all_ = registry_.StepJob(now_, "job", StopRequested{"an operator"});
  EXPECT_NE(Only<StopWorkers>(To(1)), nullptr);
  EXPECT_TRUE(To(2).empty());
  EXPECT_FALSE(registry_.Find("job")->verdict().has_value()) << "its workers are still alive";
  EXPECT_NE(Only<Verdict>(Say(1, WorkersStopped{1, 0})), nullptr);
  EXPECT_FALSE(registry_.Find("other")->verdict().has_value());
  EXPECT_TRUE(registry_.StepJob(now_, "unknown", StopRequested{"an operator"}).empty());
}

TEST_F(JobRegistryTest, WhoComesWhileTheWorkersOfAJobThatFailedAreStoppedHearsItsVerdict) {
  Say(1, HelloOf("job", "a", 1, 2));
  Say(2, HelloOf("job", "b", 2, 2));
  WorkerFailed failed;
  failed.generation = 1;
  failed.status = ExitStatus::Exited(127);
  failed.can_restart = false;
  Say(1, failed);
  EXPECT_NE(Only<Wait>(Say(3, HelloOf("job", "c", 3, 2))), nullptr);
  Say(1, WorkersStopped{1, 0});
  Say(2, WorkersStopped{1, 0});
  for (StreamId stream : {1, 2, 3}) {
    const std::vector<MasterMessage> told = To(stream);
    const auto* verdict = Only<Verdict>(told);
    ASSERT_NE(verdict, nullptr) << stream;
    EXPECT_EQ(verdict->exit_code, 127);
  }
  EXPECT_EQ(registry_.Find("job")->instance(), 1u);
  Say(4, HelloOf("job", "d", 4, 2));
  EXPECT_EQ(registry_.Find("job")->instance(), 2u) << "now nothing of it is left";
}

TEST_F(JobRegistryTest, AJobWhoseFirstAgentIsRefusedHasNeverBeen) {
  Hello hello = HelloOf("job", "a", 1, 2);
  hello.settings.nodes_max = 1;
  EXPECT_NE(Only<Rejected>(Say(1, hello)), nullptr);
  EXPECT_EQ(registry_.Find("job"), nullptr);
  EXPECT_TRUE(registry_.idle());
  ASSERT_NE(Only<Assignment>(Say(2, HelloOf("job", "a", 2))), nullptr);
  EXPECT_EQ(registry_.Find("job")->instance(), 1u);
}

TEST_F(JobRegistryTest, EndedJobsAreForgottenOldestFirst) {
  const int jobs = static_cast<int>(JobRegistry::kEndedMax) + 10;
  for (int i = 1; i <= jobs; ++i) {
    const std::string id = "job" + std::to_string(i);
    Say(i, HelloOf(id, "a", i));
    EndJob(i, id);
    registry_.Step(now_, StreamBroken{static_cast<StreamId>(i), true});
  }
  EXPECT_EQ(registry_.Find("job1"), nullptr);
  EXPECT_EQ(registry_.Find("job10"), nullptr);
  EXPECT_NE(registry_.Find("job11"), nullptr);
  // A number that may still be in somebody's memory is not given again.
  JobRegistry next({});
  next.Restore(now_, {registry_.Master(), {}});
  Say(9999, HelloOf("job1", "a", 9999));
  EXPECT_EQ(registry_.Find("job1")->instance(), 2u);
  next.Step(now_, MessageArrived{1, HelloOf("job1", "a", 9999), ""});
  EXPECT_EQ(next.Find("job1")->instance(), 2u);
}

TEST_F(JobRegistryTest, IncidentsOutliveTheMaster) {
  Hello hello = HelloOf("job", "a", 1);
  hello.settings.max_restarts = 3;
  Say(1, hello);
  WorkerFailed failed;
  failed.generation = 1;
  failed.status = ExitStatus::Exited(3);
  Say(1, failed);
  Say(1, WorkersStopped{1, 20000});
  EXPECT_EQ(registry_.Record(1)->incidents.back().outcome, IncidentOutcome::kOpen);
  Say(1, WorkersStarted{2});
  ASSERT_FALSE(all_.front().effects.empty());
  EXPECT_TRUE(std::holds_alternative<Persist>(all_.front().effects.front()));
  JobRegistry next({});
  next.Restore(now_, {{}, {*registry_.Record(1)}});
  const JobReport report = next.Report(now_, "job", StatusDetail::kFull).front();
  ASSERT_EQ(report.status.incidents.size(), 1u);
  EXPECT_EQ(report.status.incidents.back().outcome, IncidentOutcome::kRecovered);
  EXPECT_EQ(report.status.incidents.back().failed_status, ExitStatus::Exited(3));
}

class LimitedRegistryTest : public JobRegistryTest {
 protected:
  LimitedRegistryTest() : JobRegistryTest({.jobs_max = 1, .nodes_max = 2}) {}
};

TEST_F(LimitedRegistryTest, AJobTooManyIsToldAndOpensNothing) {
  Say(1, HelloOf("one", "a", 1, 2));
  const std::vector<MasterMessage> answer = Say(2, HelloOf("two", "a", 2));
  ASSERT_NE(Only<Rejected>(answer), nullptr);
  EXPECT_EQ(Only<Rejected>(answer)->exit_code, 75);
  EXPECT_TRUE(Closes(2));
  EXPECT_EQ(registry_.Find("two"), nullptr);
  EXPECT_EQ(all_.front().serial, 0u);
  EXPECT_EQ(std::get<Decided>(all_.front().effects.front()).reason.code, ReasonCode::kNoRoom);
}

TEST_F(LimitedRegistryTest, AJobThatHasEndedMakesRoomOnceItsAgentsKnow) {
  Say(1, HelloOf("one", "a", 1));
  EndJob(1, "one");
  EXPECT_NE(Only<Rejected>(Say(2, HelloOf("two", "a", 2))), nullptr);
  registry_.Step(now_, StreamBroken{1, true});
  EXPECT_NE(Only<Assignment>(Say(3, HelloOf("two", "a", 2))), nullptr);
}

TEST_F(LimitedRegistryTest, ANodeTooManyIsToldAndOneThatComesBackIsLetIn) {
  Say(1, HelloOf("job", "a", 1, 2));
  Say(2, HelloOf("job", "b", 2, 2));
  EXPECT_NE(Only<Rejected>(Say(3, HelloOf("job", "c", 3, 2))), nullptr);
  EXPECT_TRUE(Closes(3));
  EXPECT_EQ(registry_.Find("job")->nodes().count("c"), 0u);
  // A newer process of b takes the place of the older one.
  EXPECT_EQ(Only<Rejected>(Say(4, HelloOf("job", "b", 4, 2))), nullptr);
  // What is lost leaves its room to a successor of another name.
  registry_.Step(now_, StreamBroken{4});
  EXPECT_EQ(Only<Rejected>(Say(5, HelloOf("job", "c", 5, 2))), nullptr);
}

TEST_F(LimitedRegistryTest, WorkersThatRunAreLetInWhateverTheLimits) {
  Say(1, HelloOf("one", "a", 1, 2));
  Hello hello = HelloOf("two", "a", 2);
  hello.running.phase = WorkersPhase::kRunning;
  hello.running.assignment.generation = 4;
  hello.running.assignment.instance = 1;
  hello.running.assignment.group_world_size = 1;
  hello.running.assignment.world_size = 1;
  EXPECT_EQ(Only<Rejected>(Say(2, hello)), nullptr);
  EXPECT_EQ(registry_.Find("two")->phase(), RoundPhase::kRunning);
}

}  // namespace
}  // namespace muster
