#include "rendezvous/record_keeper.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace muster {
namespace {

using namespace std::chrono_literals;

// One registry and what its keeper writes.
class RecordKeeperTest : public testing::Test {
 protected:
  Hello HelloOf(const std::string& job_id, const std::string& node_id) {
    Hello hello;
    hello.job_id = job_id;
    hello.node_id = node_id;
    hello.incarnation = ++incarnation_;
    return hello;
  }
  size_t Say(StreamId stream, AgentMessage message) {
    return keeper_.Pass(now_, registry_.Step(now_, MessageArrived{stream, std::move(message), ""}))
        .size();
  }
  std::vector<std::string> KeysOf(size_t number) const {
    std::vector<std::string> keys;
    for (const RecordChange& change : writes_.at(number)) {
      keys.push_back((change.record || change.master ? "" : "-") + change.key);
    }
    return keys;
  }

  using Keys = std::vector<std::string>;

  Time now_{1h};
  uint64_t incarnation_ = 0;
  JobRegistry registry_{
      {.is_held = [this](JobRegistry::Serial job) { return keeper_.IsHeld(job); }}};
  std::vector<std::vector<RecordChange>> writes_;
  RecordKeeper keeper_{&registry_, [this](std::vector<RecordChange> changes) {
                         writes_.push_back(std::move(changes));
                       }};
};

TEST_F(RecordKeeperTest, JobsThatChangeDuringAWriteGoTogetherIntoTheNext) {
  Say(1, HelloOf("one", "a"));
  EXPECT_EQ(KeysOf(0), Keys({"jobs/one/1"}));
  Say(2, HelloOf("two", "a"));
  Say(3, HelloOf("three", "a"));
  EXPECT_EQ(writes_.size(), 1u);
  EXPECT_EQ(keeper_.Answered(now_, absl::OkStatus()).size(), 1u);
  EXPECT_EQ(KeysOf(1), Keys({"jobs/two/1", "jobs/three/1"}));
  EXPECT_EQ(keeper_.Answered(now_, absl::OkStatus()).size(), 2u);
  EXPECT_TRUE(keeper_.empty());
}

TEST_F(RecordKeeperTest, WhoComesWhileTheVerdictIsBeingWrittenBelongsToThatJob) {
  Say(1, HelloOf("one", "a"));
  keeper_.Answered(now_, absl::OkStatus());
  EXPECT_FALSE(keeper_.IsHeld(1));
  Say(1, WorkersSucceeded{1, 0});
  EXPECT_TRUE(keeper_.IsHeld(1));
  Say(2, HelloOf("one", "b"));
  EXPECT_EQ(registry_.Find("one")->instance(), 1u);
  std::vector<StreamId> told;
  const auto listen = [&](const std::vector<JobEffects>& all) {
    for (const JobEffects& job : all) {
      for (const RoundEffect& effect : job.effects) {
        const auto* send = std::get_if<SendTo>(&effect);
        if (send == nullptr || !std::holds_alternative<Verdict>(send->message)) continue;
        told.push_back(send->stream);
      }
    }
  };
  listen(keeper_.Answered(now_, absl::OkStatus()));
  listen(keeper_.Answered(now_, absl::OkStatus()));
  EXPECT_EQ(told, std::vector<StreamId>({1, 2}));
  Say(3, HelloOf("one", "c"));
  EXPECT_EQ(registry_.Find("one")->instance(), 2u);
}

TEST_F(RecordKeeperTest, AFailedWriteIsTriedAgainWithTheRecordAsItIsByThenAndMoreAndMoreSlowly) {
  Say(1, HelloOf("one", "a"));
  EXPECT_TRUE(keeper_.Answered(now_, absl::UnavailableError("away")).empty());
  EXPECT_EQ(keeper_.trouble().message(), "away");
  EXPECT_EQ(keeper_.NextDeadline(), now_ + 100ms);
  Say(1, WorkersSucceeded{1, 0});
  EXPECT_EQ(writes_.size(), 1u) << "not before its time";
  now_ += 100ms;
  keeper_.Pass(now_, {});
  ASSERT_EQ(writes_.size(), 2u);
  EXPECT_TRUE(writes_[1][0].record->verdict.has_value());
  for (const Duration wait : {200ms, 400ms, 800ms, 1600ms, 3200ms, 5000ms, 5000ms}) {
    keeper_.Answered(now_, absl::UnavailableError("away"));
    EXPECT_EQ(keeper_.NextDeadline(), now_ + wait);
    now_ += wait;
    keeper_.Pass(now_, {});
  }
  EXPECT_FALSE(keeper_.Answered(now_, absl::OkStatus()).empty());
  EXPECT_TRUE(keeper_.trouble().ok());
  EXPECT_EQ(keeper_.NextDeadline(), kNever);
}

TEST_F(RecordKeeperTest, AMasterThatIsDeposedWritesNoMore) {
  Say(1, HelloOf("one", "a"));
  EXPECT_TRUE(keeper_.Answered(now_, absl::FailedPreconditionError("deposed")).empty());
  EXPECT_EQ(keeper_.NextDeadline(), kNever);
}

TEST_F(RecordKeeperTest, TheRecordOfAJobThatIsForgottenIsRemovedWhenItsNumberIsThereToStay) {
  for (StreamId stream = 1; stream <= JobRegistry::kEndedMax + 1; ++stream) {
    Say(stream, HelloOf("job" + std::to_string(stream), "a"));
    keeper_.Answered(now_, absl::OkStatus());
    Say(stream, WorkersSucceeded{1, 0});
    keeper_.Answered(now_, absl::OkStatus());
    keeper_.Pass(now_, registry_.Step(now_, StreamBroken{stream, true}));
  }
  EXPECT_EQ(KeysOf(writes_.size() - 1), Keys({"master"}));
  EXPECT_EQ(writes_.back()[0].master->forgotten_instance, 1u);
  keeper_.Answered(now_, absl::UnavailableError("away"));
  now_ += 100ms;
  keeper_.Pass(now_, {});
  EXPECT_EQ(KeysOf(writes_.size() - 1), Keys({"master"})) << "until it says OK";
  keeper_.Answered(now_, absl::OkStatus());
  EXPECT_EQ(KeysOf(writes_.size() - 1), Keys({"-jobs/job1/1"}));
  keeper_.Answered(now_, absl::UnavailableError("away"));
  now_ += 100ms;
  keeper_.Pass(now_, {});
  EXPECT_EQ(KeysOf(writes_.size() - 1), Keys({"-jobs/job1/1"})) << "until it says OK";
  keeper_.Answered(now_, absl::OkStatus());
  EXPECT_TRUE(keeper_.empty());
}

TEST_F(RecordKeeperTest, WithoutAStoreEverythingPassesAtOnce) {
  RecordKeeper none(&registry_, nullptr);
  EXPECT_EQ(
      none.Pass(now_, registry_.Step(now_, MessageArrived{1, HelloOf("one", "a"), ""})).size(), 1u);
  EXPECT_TRUE(none.empty());
}

TEST_F(RecordKeeperTest, AnotherRegistryGoesOnWithTheRecords) {
  Hello hello = HelloOf("one", "a");
  Say(1, hello);
  std::vector<JobRecord> records = {*writes_[0][0].record};
  records.push_back(records[0]);
  records[1].instance = 2;

  JobRegistry next({});
  next.Restore(now_, {{}, records});
  EXPECT_EQ(next.Find("one")->instance(), 2u);
  EXPECT_EQ(next.Record(1), records[0]);
  EXPECT_EQ(next.NextDeadline(), now_ + 10s);
  RecordKeeper keeper(
      &next, [this](std::vector<RecordChange> changes) { writes_.push_back(std::move(changes)); });
  keeper.Restored({{}, records});
  hello.running = {WorkersPhase::kRunning, registry_.Find("one")->seats()[0].assignment};
  hello.running.assignment.instance = 2;
  keeper.Pass(now_, next.Step(now_, MessageArrived{5, hello, ""}));
  EXPECT_EQ(writes_.size(), 1u) << "nothing has changed";
  keeper.Pass(now_, next.Step(now_, MessageArrived{5, WorkersSucceeded{1, 0}, ""}));
  ASSERT_EQ(writes_.size(), 2u);
  EXPECT_EQ(writes_[1][0].key, "jobs/one/2");
}

}  // namespace
}  // namespace muster
