#include "rendezvous/job_registry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace muster {
namespace {

using namespace std::chrono_literals;

class JobRegistryTest : public testing::Test {
 protected:
  explicit JobRegistryTest(MasterLimits limits = {}, Duration idle_time = {})
      : registry_({.seed = 1,
                   .limits = limits,
                   .idle_time = idle_time,
                   .on_violation = [](const std::string& what) { ADD_FAILURE() << what; }}) {}

  static Hello HelloOf(const std::string& job_id, const std::string& node_id, uint64_t incarnation,
                       int nodes = 1) {
    Hello hello;
    hello.job_id = job_id;
    hello.node_id = node_id;
    hello.incarnation = incarnation;
    hello.settings.nodes_min = hello.settings.nodes_max = nodes;
    hello.next_port = 20000;
    return hello;
  }

  // What the registry sends to `stream` in answer to a message that comes on it.
  std::vector<MasterMessage> Say(StreamId stream, AgentMessage message) {
    all_ = registry_.Step(now_, MessageArrived{stream, std::move(message), ""});
    return To(stream);
  }
  std::vector<MasterMessage> To(StreamId stream) const {
    std::vector<MasterMessage> sent;
    for (const JobEffects& job : all_) {
      for (const RoundEffect& effect : job.effects) {
        const auto* send = std::get_if<SendTo>(&effect);
        if (send != nullptr && send->stream == stream) sent.push_back(send->message);
      }
    }
    return sent;
  }
  bool Closes(StreamId stream) const {
    for (const JobEffects& job : all_) {
      for (const RoundEffect& effect : job.effects) {
        const auto* close = std::get_if<CloseStreamTo>(&effect);
        if (close != nullptr && close->stream == stream) return true;
      }
    }
    return false;
  }
  template <typename T>
  static const T* Only(const std::vector<MasterMessage>& messages) {
    return messages.size() == 1 ? std::get_if<T>(&messages.front()) : nullptr;
  }
  void EndJob(StreamId stream, const std::string& job_id) {
    const int64_t generation = registry_.Find(job_id)->generation();
    ASSERT_NE(Only<Verdict>(Say(stream, WorkersSucceeded{generation, 0})), nullptr);
  }

  Time now_ = Time(1h);
  JobRegistry registry_;
  std::vector<JobEffects> all_;
};

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
  EXPECT_TRUE(registry_.StepJob(now_, "unknown", StopRequested{"an operator"}).empty());
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

class ForgetfulRegistryTest : public JobRegistryTest {
 protected:
  ForgetfulRegistryTest() : JobRegistryTest({}, 30min) {}

  // Serves every deadline at its moment until `span` has passed.
  void Pass(Duration span) {
    const Time end = now_ + span;
    while (registry_.NextDeadline() <= end) {
      now_ = std::max(now_, registry_.NextDeadline());
      all_ = registry_.Step(now_, DeadlinePassed{});
    }
    now_ = end;
  }
  // Its job waits for its return for longer than the master keeps it.
  static Hello PatientHello() {
    Hello hello = HelloOf("job", "a", 1);
    hello.settings.join_timeout = 2h;
    return hello;
  }
};

TEST_F(ForgetfulRegistryTest, AJobThatIsLeftAloneIsGivenUpAndForgotten) {
  Say(1, PatientHello());
  registry_.Step(now_, StreamBroken{1});
  Pass(30min - 1ns);
  ASSERT_NE(registry_.Find("job"), nullptr);
  EXPECT_FALSE(registry_.Find("job")->verdict().has_value());
  Pass(1ns);
  EXPECT_EQ(registry_.Find("job"), nullptr);
  EXPECT_TRUE(registry_.idle());
  EXPECT_EQ(registry_.NextDeadline(), kNever);
  // It is told, and no record of it stays.
  ASSERT_EQ(all_.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<Persist>(all_.front().effects.front()));
  EXPECT_FALSE(registry_.Record(all_.front().serial).has_value());
  const auto* decided = std::get_if<Decided>(&all_.front().effects.back());
  ASSERT_NE(decided, nullptr);
  EXPECT_EQ(decided->reason.code, ReasonCode::kJobLeftAlone);
  EXPECT_EQ(Sentence(decided->reason),
            "job given up: none of its nodes was here for 30m (--job-idle-timeout)");
}

TEST_F(ForgetfulRegistryTest, AJobThatIsLeftAloneIsKnownUntilItsFenceHasFallen) {
  Hello hello = PatientHello();
  hello.settings.fencing = Fencing::kStrict;
  hello.settings.master_loss_timeout = 1h;
  Say(1, hello);
  registry_.Step(now_, StreamBroken{1});
  Pass(66min - 1ns);
  EXPECT_NE(registry_.Find("job"), nullptr);
  Pass(1ns);
  EXPECT_EQ(registry_.Find("job"), nullptr);
}

TEST_F(ForgetfulRegistryTest, AnAgentThatComesBackBeginsTheTimeAnew) {
  Say(1, PatientHello());
  registry_.Step(now_, StreamBroken{1});
  Pass(29min);
  Say(2, PatientHello());
  registry_.Step(now_, StreamBroken{2});
  Pass(29min);
  EXPECT_NE(registry_.Find("job"), nullptr);
  Pass(1min);
  EXPECT_EQ(registry_.Find("job"), nullptr);
}

TEST_F(ForgetfulRegistryTest, AnAgentThatIsHereKeepsItsJobHoweverLongNothingHappens) {
  Say(1, PatientHello());
  for (int i = 0; i < 1000; ++i) {
    now_ += 5s;
    Say(1, Heartbeat{1});
  }
  EXPECT_EQ(registry_.Find("job")->phase(), RoundPhase::kRunning);
}

TEST_F(ForgetfulRegistryTest, TimeThatTheMasterDidNotRunDoesNotCount) {
  Say(1, PatientHello());
  registry_.Step(now_, StreamBroken{1});
  now_ += 30min;
  registry_.Step(now_, WokeUp{30min, 30min});
  registry_.Step(now_, DeadlinePassed{});
  EXPECT_NE(registry_.Find("job"), nullptr);
  Pass(30min);
  EXPECT_EQ(registry_.Find("job"), nullptr);
}

TEST_F(ForgetfulRegistryTest, AMasterThatStartsAgainCountsFromItsStart) {
  Say(1, PatientHello());
  registry_.Step(now_, StreamBroken{1});
  const std::optional<JobRecord> record = registry_.Record(1);
  ASSERT_TRUE(record.has_value());
  registry_ = JobRegistry({.seed = 2, .idle_time = 30min});
  now_ += 24h;
  registry_.Restore(now_, {{}, {*record}});
  Pass(30min - 1ns);
  EXPECT_NE(registry_.Find("job"), nullptr);
  Pass(1ns);
  EXPECT_EQ(registry_.Find("job"), nullptr);
}

TEST_F(ForgetfulRegistryTest, WorkersThatComeBackAfterAllGoOnAsAtANewMaster) {
  Say(1, PatientHello());
  Hello hello = PatientHello();
  hello.running = {WorkersPhase::kRunning, *Only<Assignment>(To(1))};
  registry_.Step(now_, StreamBroken{1});
  Pass(30min);
  EXPECT_EQ(registry_.Find("job"), nullptr);
  Say(2, hello);
  EXPECT_EQ(registry_.Find("job")->phase(), RoundPhase::kRunning);
  EXPECT_EQ(registry_.Find("job")->generation(), hello.running.assignment.generation);
}

TEST_F(ForgetfulRegistryTest, ANewJobOfThatNameIsAnotherOne) {
  Say(1, PatientHello());
  const uint64_t first = registry_.Find("job")->instance();
  registry_.Step(now_, StreamBroken{1});
  Pass(30min);
  Say(2, HelloOf("job", "b", 2));
  EXPECT_EQ(registry_.Find("job")->instance(), first + 1);
}

}  // namespace
}  // namespace muster
