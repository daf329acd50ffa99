// Persist, then reply, then notify: a master's loop with a store.
#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/state_codec.h"
#include "tests/rendezvous/master_loop_fixture.h"

namespace muster {
namespace {

using namespace std::chrono_literals;

// A store that answers when the test says so.
class ManualStore : public StateStore {
 public:
  absl::StatusOr<std::vector<StoredValue>> Load() override { return std::vector<StoredValue>(); }
  absl::Status Write(const std::vector<StoreWrite>& changes) override {
    MutexLock lock(&mutex_);
    writes_.push_back(changes);
    changed_.SignalAll();
    while (answers_.empty()) changed_.Wait(&mutex_);
    const absl::Status answer = answers_.front();
    answers_.pop_front();
    return answer;
  }
  void Answer(absl::Status status) {
    MutexLock lock(&mutex_);
    answers_.push_back(std::move(status));
    changed_.SignalAll();
  }
  // The number-th write, from 1.
  std::vector<StoreWrite> Await(size_t number) {
    MutexLock lock(&mutex_);
    while (writes_.size() < number) changed_.Wait(&mutex_);
    return writes_[number - 1];
  }
  size_t writes() {
    MutexLock lock(&mutex_);
    return writes_.size();
  }

 private:
  Mutex mutex_;
  Condition changed_;
  std::vector<std::vector<StoreWrite>> writes_ ABSL_GUARDED_BY(mutex_);
  std::deque<absl::Status> answers_ ABSL_GUARDED_BY(mutex_);
};

class MasterLoopStoreTest : public MasterLoopTest {
 protected:
  MasterLoopStoreTest() { StartWith({}); }
  ~MasterLoopStoreTest() override {
    // The writes that are still to come.
    for (int i = 0; i < 10; ++i) store_.Answer(absl::OkStatus());
    loop_.reset();
  }

  void StartWith(std::vector<JobRecord> records) {
    MasterLoop::Options options;
    options.store = &store_;
    options.restored.jobs = std::move(records);
    options.on_store_trouble = [this](const absl::Status& status) {
      MutexLock lock(&mutex_);
      decisions_.push_back("store: " + std::string(status.message()));
    };
    options.on_deposed = [this](const absl::Status&) {
      MutexLock lock(&mutex_);
      decisions_.push_back("deposed");
    };
    Start(std::move(options));
  }
  // Everything that was posted before has been handled.
  void Settle(StreamId stream) {
    Say(stream, Heartbeat{++beat_});
    while (streams_.Await<HeartbeatAck>(stream).sequence != beat_) {
    }
  }

  // What the master tells of itself now.
  std::shared_ptr<const MasterReport> Ask() {
    struct {
      Mutex mutex;
      Condition changed;
      std::shared_ptr<const MasterReport> report;
    } answer;
    const StatusQuery query{"", StatusDetail::kSummary, /*once=*/true};
    loop_->Post(WatchStatus{++watcher_, query, [&](const auto& report) {
                              MutexLock lock(&answer.mutex);
                              answer.report = report;
                              answer.changed.SignalAll();
                              return false;
                            }});
    clock_.Advance(StatusWatchers::kSpacing);
    MutexLock lock(&answer.mutex);
    while (answer.report == nullptr) answer.changed.Wait(&answer.mutex);
    return answer.report;
  }

  WatcherId watcher_ = 0;
  ManualStore store_;
  uint64_t beat_ = 1000;
};

TEST_F(MasterLoopStoreTest, NobodyIsToldOfAGenerationThatIsNotWritten) {
  Attend(1, "a", 2);
  Attend(2, "b", 2);
  const std::vector<StoreWrite> written = store_.Await(1);
  ASSERT_EQ(written.size(), 1u);
  EXPECT_EQ(written[0].key, "jobs/job/1");
  const absl::StatusOr<JobRecord> record = DecodeJob(*written[0].value);
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->generation, 1);
  Settle(1);  // heartbeats are answered meanwhile
  Settle(2);
  EXPECT_FALSE(HasDecided("job/generation_started"));
  store_.Answer(absl::OkStatus());
  EXPECT_EQ(streams_.Await<Assignment>(1).generation, 1);
  EXPECT_EQ(streams_.Await<Assignment>(2).generation, 1);
  EXPECT_TRUE(HasDecided("job/generation_started"));
}

TEST_F(MasterLoopStoreTest, HeartbeatsAreNeverWritten) {
  Attend(1, "a", 1);
  store_.Await(1);
  store_.Answer(absl::OkStatus());
  streams_.Await<Assignment>(1);
  for (int64_t step = 0; step < 1000; ++step) {
    Say(1, Heartbeat{++beat_, Progress{1, step, 0s}});
    streams_.Await<HeartbeatAck>(1);
  }
  EXPECT_EQ(store_.writes(), 1u);
}

TEST_F(MasterLoopStoreTest, AWriteThatFailsIsTriedAgainAndTheTroubleIsTold) {
  Attend(1, "a", 1);
  store_.Await(1);
  store_.Answer(absl::ResourceExhaustedError("the disk is full"));
  Settle(1);
  clock_.AwaitWaiter();
  while (!HasDecided("store: the disk is full")) Settle(1);
  const auto before = Ask();
  ASSERT_TRUE(before->store_trouble.has_value());
  EXPECT_EQ(before->store_trouble->why, "the disk is full");
  EXPECT_EQ(before->store.failed.count, 1u);
  clock_.Advance(100ms);
  EXPECT_EQ(store_.Await(2), store_.Await(1));
  store_.Answer(absl::OkStatus());
  EXPECT_EQ(streams_.Await<Assignment>(1).generation, 1);
  EXPECT_TRUE(HasDecided("store: "));
  const auto after = Ask();
  EXPECT_FALSE(after->store_trouble.has_value());
  EXPECT_EQ(after->store.written.count, 1u);
}

TEST_F(MasterLoopStoreTest, ADeposedMasterTellsNobodyAnythingAndClosesAllStreams) {
  Attend(1, "a", 1);
  store_.Await(1);
  store_.Answer(absl::FailedPreconditionError("another master leads"));
  streams_.AwaitAllClosed();
  Say(1, Heartbeat{1});
  loop_->Stop();
  EXPECT_TRUE(HasDecided("deposed"));
  EXPECT_EQ(streams_.SentTo(1), 0u);
  EXPECT_EQ(store_.writes(), 1u);
}

TEST_F(MasterLoopStoreTest, AMasterThatStartsAgainGoesOnWithWhatWasWritten) {
  Attend(1, "a", 1);
  const JobRecord record = *DecodeJob(*store_.Await(1)[0].value);
  store_.Answer(absl::OkStatus());
  const Assignment place = streams_.Await<Assignment>(1);
  StartWith({record});
  Hello hello;
  hello.job_id = "job";
  hello.node_id = "a";
  hello.incarnation = 1;
  hello.settings.nodes_min = hello.settings.nodes_max = 1;
  hello.running = {WorkersPhase::kRunning, place};
  loop_->Post(StreamOpened{7});
  Say(7, hello);
  Settle(7);
  EXPECT_EQ(streams_.SentTo(7), 0u);
  EXPECT_EQ(store_.writes(), 1u);
  Say(7, WorkersSucceeded{1, 0});
  store_.Answer(absl::OkStatus());
  EXPECT_TRUE(streams_.Await<Verdict>(7).succeeded);
  EXPECT_EQ(store_.Await(2)[0].key, "jobs/job/1");
}

TEST_F(MasterLoopStoreTest, AnOperatorIsAnsweredWhenTheEndIsWritten) {
  Attend(1, "a", 1);
  store_.Answer(absl::OkStatus());
  streams_.Await<Assignment>(1);
  Mutex mutex;
  Condition changed;
  bool answered = false;
  loop_->Post(JobCommand{"job", StopRequested{"an operator"}, [&](absl::Status status) {
                           MutexLock lock(&mutex);
                           EXPECT_TRUE(status.ok());
                           answered = true;
                           changed.SignalAll();
                         }});
  store_.Await(2);
  Settle(1);
  {
    MutexLock lock(&mutex);
    EXPECT_FALSE(answered);
  }
  store_.Answer(absl::OkStatus());
  MutexLock lock(&mutex);
  while (!answered) changed.Wait(&mutex);
}

}  // namespace
}  // namespace muster
