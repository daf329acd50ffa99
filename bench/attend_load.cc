// Plays the agents of one job against a master, in one process, and prints what it measured as one
// line of JSON. No workers, no policy: each answers what a real agent would.
//
//   attend_load ENDPOINT JOB AGENTS CONNECTIONS ROUNDS IDLE_SECONDS
//
// In turn: all agents say Hello (cold: from the first Hello to the last Assignment); ROUNDS times
// one agent's worker fails and all meet again (rounds: from the failure to the last Assignment);
// one agent's stream breaks (stop_order: until the last of the others is told to stop) and a new
// process of its node comes (replaced: from its Hello to the last Assignment); for IDLE_SECONDS all
// send heartbeats every 5 s; all workers succeed (ending: until the last Verdict). Between the
// parts it prints a line "at PART" and waits for a line of input, so that the caller can look at
// the master.
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "bench/load_hello.h"
#include "proto/rendezvous.grpc.pb.h"

namespace muster {
namespace {

using std::chrono::steady_clock;

constexpr auto kTooLong = std::chrono::minutes(4);
constexpr int64_t kSecond = 1'000'000'000;

// Counts to a number from many threads, and remembers when it was reached.
class Countdown {
 public:
  void Begin(int count) {
    std::lock_guard lock(mutex_);
    left_ = count;
    begin_ = steady_clock::now();
  }

  void One() {
    std::lock_guard lock(mutex_);
    if (--left_ != 0) return;
    end_ = steady_clock::now();
    reached_.notify_all();
  }

  // Milliseconds from Begin to the last One. Ends the program when it does not come.
  double Await(const char* what) {
    std::unique_lock lock(mutex_);
    if (!reached_.wait_for(lock, kTooLong, [this] { return left_ <= 0; })) {
      std::fprintf(stderr, "attend_load: %s: %d are missing\n", what, left_);
      std::_Exit(1);
    }
    return std::chrono::duration<double, std::milli>(end_ - begin_).count();
  }

 private:
  std::mutex mutex_;
  std::condition_variable reached_;
  int left_ = 0;
  steady_clock::time_point begin_, end_;
};

struct Counts {
  Countdown assigned, told_to_stop, verdicts, gone;
};

class Agent final : public grpc::ClientBidiReactor<v1::AgentMessage, v1::MasterMessage> {
 public:
  Agent(std::shared_ptr<grpc::Channel> channel, Counts* counts)
      : stub_(v1::Rendezvous::NewStub(std::move(channel))), counts_(counts) {}

  void Attend(const v1::Hello& hello) {
    port_ = hello.next_port();
    stub_->async()->Attend(&context_, this);
    AddHold();
    v1::AgentMessage message;
    *message.mutable_hello() = hello;
    Send(message);
    StartRead(&incoming_);
    StartCall();
  }

  void Send(const v1::AgentMessage& message) {
    std::lock_guard lock(mutex_);
    outgoing_.push_back(message);
    if (outgoing_.size() == 1) StartWrite(&outgoing_.front());
  }

  void FailWorker() {
    v1::AgentMessage message;
    v1::WorkerFailed* failed = message.mutable_worker_failed();
    failed->set_generation(generation_);
    failed->set_exit_code(1);
    failed->set_was_ready(true);
    failed->set_uptime_ns(kSecond);
    Send(message);
    SendStopped();
  }

  void SendStopped() {
    v1::AgentMessage message;
    message.mutable_workers_stopped()->set_generation(generation_);
    message.mutable_workers_stopped()->set_next_port(port_);
    Send(message);
  }

  void SendSucceeded() {
    v1::AgentMessage message;
    message.mutable_workers_succeeded()->set_generation(generation_);
    Send(message);
  }

  void SendHeartbeat() {
    v1::AgentMessage message;
    message.mutable_heartbeat()->set_sequence(++sequence_);
    Send(message);
  }

  void Break() { context_.TryCancel(); }

 private:
  void OnReadDone(bool ok) override {
    if (!ok) return RemoveHold();
    if (incoming_.has_assignment()) {
      generation_ = incoming_.assignment().generation();
      counts_->assigned.One();
    } else if (incoming_.has_stop_workers()) {
      counts_->told_to_stop.One();
      SendStopped();
    } else if (incoming_.has_verdict()) {
      counts_->verdicts.One();
      Finish();
    } else if (incoming_.has_rejected()) {
      std::fprintf(stderr, "attend_load: refused: %s\n", incoming_.rejected().reason().c_str());
      std::_Exit(1);
    }
    StartRead(&incoming_);
  }

  void OnWriteDone(bool ok) override {
    std::lock_guard lock(mutex_);
    outgoing_.pop_front();
    if (!ok) return outgoing_.clear();
    if (!outgoing_.empty()) return StartWrite(&outgoing_.front());
    if (finishing_) StartWritesDone();
  }

  void OnDone(const grpc::Status&) override { counts_->gone.One(); }

  void Finish() {
    std::lock_guard lock(mutex_);
    finishing_ = true;
    if (outgoing_.empty()) StartWritesDone();
  }

  const std::unique_ptr<v1::Rendezvous::Stub> stub_;
  Counts* const counts_;
  grpc::ClientContext context_;
  v1::MasterMessage incoming_;
  std::atomic<int64_t> generation_ = 0;
  std::atomic<uint64_t> sequence_ = 0;
  int port_ = 0;
  std::mutex mutex_;
  std::deque<v1::AgentMessage> outgoing_;  // the first is being written
  bool finishing_ = false;
};

std::vector<std::shared_ptr<grpc::Channel>> Connections(const std::string& endpoint, int count) {
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  for (int i = 0; i < count; ++i) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    channels.push_back(
        grpc::CreateCustomChannel(endpoint, grpc::InsecureChannelCredentials(), arguments));
  }
  return channels;
}

void Pause(const char* part) {
  std::printf("at %s\n", part);
  std::fflush(stdout);
  std::string line;
  std::getline(std::cin, line);
}

void Heartbeats(const std::vector<std::unique_ptr<Agent>>& agents, int seconds) {
  const auto end = steady_clock::now() + std::chrono::seconds(seconds);
  constexpr int kSlices = 50;  // an agent's turn comes every 5 s
  for (int slice = 0; steady_clock::now() < end; slice = (slice + 1) % kSlices) {
    const auto next = steady_clock::now() + std::chrono::milliseconds(100);
    for (size_t i = slice; i < agents.size(); i += kSlices) agents[i]->SendHeartbeat();
    std::this_thread::sleep_until(next);
  }
}

int Main(const std::string& endpoint, const std::string& job, int count, int connections,
         int rounds, int idle_seconds) {
  Counts counts;
  const auto channels = Connections(endpoint, connections);
  std::vector<std::unique_ptr<Agent>> agents;
  for (int i = 0; i < count; ++i) {
    agents.push_back(std::make_unique<Agent>(channels[i % connections], &counts));
  }
  counts.gone.Begin(count + (count > 1 ? 1 : 0));
  Pause("begin");
  counts.assigned.Begin(count);
  for (int i = 0; i < count; ++i) agents[i]->Attend(HelloOf(job, count, i, i + 1));
  const double cold = counts.assigned.Await("first assignment");
  Pause("cold");

  std::string round_times;
  for (int round = 0; round < rounds; ++round) {
    counts.told_to_stop.Begin(count - 1);
    counts.assigned.Begin(count);
    agents[round % count]->FailWorker();
    const double time = counts.assigned.Await("assignment after a failure");
    round_times += (round_times.empty() ? "" : ", ") + std::to_string(time);
  }
  Pause("rounds");

  double stop_order = 0;
  double replaced = 0;
  if (count > 1) {
    counts.told_to_stop.Begin(count - 1);
    agents[0]->Break();
    stop_order = counts.told_to_stop.Await("stop order after a loss");
    counts.assigned.Begin(count);
    agents.push_back(std::make_unique<Agent>(channels[0], &counts));
    agents.back()->Attend(HelloOf(job, count, 0, count + 1));
    replaced = counts.assigned.Await("assignment after a loss");
    std::swap(agents.front(), agents.back());
  }
  Pause("loss");

  const std::unique_ptr<Agent> broken = count > 1 ? std::move(agents.back()) : nullptr;
  if (broken != nullptr) agents.pop_back();
  Heartbeats(agents, idle_seconds);
  Pause("idle");

  counts.verdicts.Begin(count);
  for (const auto& agent : agents) agent->SendSucceeded();
  const double ending = counts.verdicts.Await("verdict");
  counts.gone.Await("end of the streams");
  std::printf(
      "{\"cold_ms\": %.3f, \"round_ms\": [%s], \"stop_order_ms\": %.3f, \"replaced_ms\": %.3f, "
      "\"ending_ms\": %.3f}\n",
      cold, round_times.c_str(), stop_order, replaced, ending);
  return 0;
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  if (argc != 7) {
    std::fputs("usage: attend_load ENDPOINT JOB AGENTS CONNECTIONS ROUNDS IDLE_SECONDS\n", stderr);
    return 2;
  }
  return muster::Main(argv[1], argv[2], std::atoi(argv[3]), std::atoi(argv[4]), std::atoi(argv[5]),
                      std::atoi(argv[6]));
}
