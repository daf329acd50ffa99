// Jobs of which no agent is here.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <variant>

#include "tests/rendezvous/job_registry_fixture.h"

namespace muster {
namespace {

using namespace std::chrono_literals;

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
