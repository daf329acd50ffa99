#ifndef MUSTER_TESTS_RENDEZVOUS_MASTER_LOOP_FIXTURE_H_
#define MUSTER_TESTS_RENDEZVOUS_MASTER_LOOP_FIXTURE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "rendezvous/master_loop.h"
#include "tests/fakes/fake_clock.h"

namespace muster {

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
  void CloseAll() override {
    MutexLock lock(&mutex_);
    all_closed_ = true;
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
  void AwaitAllClosed() {
    MutexLock lock(&mutex_);
    while (!all_closed_) changed_.Wait(&mutex_);
  }
  size_t SentTo(StreamId stream) {
    MutexLock lock(&mutex_);
    return sent_[stream].size();
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
  bool all_closed_ ABSL_GUARDED_BY(mutex_) = false;
};

class MasterLoopTest : public testing::Test {
 protected:
  MasterLoopTest() { Start({}); }

  void Start(MasterLoop::Options options) {
    loop_.reset();
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

}  // namespace muster

#endif  // MUSTER_TESTS_RENDEZVOUS_MASTER_LOOP_FIXTURE_H_
