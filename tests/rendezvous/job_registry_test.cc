#include "rendezvous/job_registry.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace muster {
namespace {

using namespace std::chrono_literals;

class JobRegistryTest : public testing::Test {
 protected:
  JobRegistryTest()
      : registry_(
            {.seed = 1, .on_violation = [](const std::string& what) { ADD_FAILURE() << what; }}) {}

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
  EXPECT_FALSE(To(1).empty());
  EXPECT_TRUE(To(2).empty());
  EXPECT_TRUE(registry_.Find("job")->verdict().has_value());
  EXPECT_TRUE(registry_.StepJob(now_, "unknown", StopRequested{"an operator"}).empty());
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
  Say(9999, HelloOf("job1", "a", 9999));
  EXPECT_EQ(registry_.Find("job1")->instance(), 2u);
}

}  // namespace
}  // namespace muster
