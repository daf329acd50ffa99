// Plays the agents of one job whose master dies, each with a connection of its own, in one process:
// how long until all are attached again to the one that comes back, and does it leave their workers
// alone? They try as the real agents do (agent/master_link.h).
//
//   reattach_load ENDPOINT JOB AGENTS
//
// Prints "at joined" when the generation is there, and waits for the master's end. When each of
// them is attached again, and has an answer, it prints one line of JSON: when that was
// (CLOCK_MONOTONIC, seconds), how often all of them tried, and how many were told to stop their
// workers.
#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/master_link.h"
#include "base/clock.h"
#include "base/event_queue.h"
#include "bench/load_hello.h"
#include "proto/rendezvous.grpc.pb.h"

namespace muster {
namespace {

constexpr size_t kEventsMax = 1 << 20;

struct Event {
  int agent = 0;
  int attempt = 0;
  v1::MasterMessage message;  // none: the stream has ended
};

// One attempt to attend. To be deleted some time after its end: gRPC does not bear that the last
// of a channel goes within one of its callbacks.
class Stream final : public grpc::ClientBidiReactor<v1::AgentMessage, v1::MasterMessage> {
 public:
  // A running agent asks for a sign of life as well.
  Stream(const std::string& endpoint, const v1::Hello& hello, int agent, int attempt,
         EventQueue<Event>* events)
      : events_(events), event_{agent, attempt, {}} {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    stub_ = v1::Rendezvous::NewStub(
        grpc::CreateCustomChannel(endpoint, grpc::InsecureChannelCredentials(), arguments));
    *hello_.mutable_hello() = hello;
    heartbeat_.mutable_heartbeat()->set_sequence(1);
    stub_->async()->Attend(&context_, this);
    StartWrite(&hello_);
    StartRead(&event_.message);
    StartCall();
  }

 private:
  void OnWriteDone(bool ok) override {
    if (!ok || std::exchange(has_asked_, true) || !hello_.hello().has_running()) return;
    StartWrite(&heartbeat_);
  }
  void OnReadDone(bool ok) override {
    if (!ok) return;
    events_->Push(event_);
    StartRead(&event_.message);
  }
  void OnDone(const grpc::Status&) override {
    event_.message.Clear();
    events_->Push(event_);
  }

  EventQueue<Event>* const events_;
  std::unique_ptr<v1::Rendezvous::Stub> stub_;
  grpc::ClientContext context_;
  v1::AgentMessage hello_, heartbeat_;
  bool has_asked_ = false;
  Event event_;
};

JobSettings SettingsOf(const v1::Hello& hello) {
  JobSettings settings;
  settings.keep_alive_interval = Duration(hello.settings().keep_alive_interval_ns());
  settings.keep_alive_max_attempt = hello.settings().keep_alive_max_attempt();
  return settings;
}

class Agents {
 public:
  Agents(std::string endpoint, const std::string& job, int count)
      : endpoint_(std::move(endpoint)), events_(&clock_, kEventsMax) {
    for (int i = 0; i < count; ++i) {
      const v1::Hello hello = HelloOf(job, count, i, i + 1);
      agents_.push_back({hello, MasterLink(SettingsOf(hello), true, i + 1), nullptr});
    }
  }

  void Join() {
    for (size_t i = 0; i < agents_.size(); ++i) Open(static_cast<int>(i));
    while (assigned_ < agents_.size()) Handle();
  }

  void AwaitReattachment() {
    while (attached_.size() < agents_.size()) Handle();
    const std::chrono::duration<double> now = clock_.Now().time_since_epoch();
    std::printf("{\"attached_at_s\": %.6f, \"attempts\": %d, \"stopped\": %d}\n", now.count(),
                attempts_ - static_cast<int>(agents_.size()), stopped_);
  }

 private:
  struct Agent {
    v1::Hello hello;
    MasterLink link;
    std::unique_ptr<Stream> stream;
  };

  void Open(int index) {
    Agent& agent = agents_[index];
    ++attempts_;
    agent.hello.set_attempt(agent.hello.attempt() + 1);
    agent.link.Opened(clock_.Now());
    agent.stream = std::make_unique<Stream>(endpoint_, agent.hello, index,
                                            static_cast<int>(agent.hello.attempt()), &events_);
  }

  void Handle() {
    const Time next = due_.empty() ? kNever : due_.begin()->first;
    if (const auto event = events_.Pop(next)) Take(*event);
    const Time now = clock_.Now();
    while (!due_.empty() && due_.begin()->first <= now) {
      Open(due_.extract(due_.begin()).value().second);
    }
  }

  void Take(const Event& event) {
    Agent& agent = agents_[event.agent];
    if (static_cast<uint64_t>(event.attempt) != agent.hello.attempt()) return;
    const v1::MasterMessage& message = event.message;
    if (message.kind_case() == v1::MasterMessage::KIND_NOT_SET) {
      attached_.erase(event.agent);
      agent.link.Lost(clock_.Now());
      due_.insert({agent.link.NextDeadline(), event.agent});
      return;
    }
    agent.link.Heard(clock_.Now());
    if (message.has_assignment()) {
      agent.hello.mutable_running()->set_phase(v1::WORKERS_PHASE_RUNNING);
      *agent.hello.mutable_running()->mutable_assignment() = message.assignment();
      ++assigned_;
    } else if (message.has_heartbeat_ack()) {
      attached_.insert(event.agent);
    } else if (message.has_stop_workers()) {
      ++stopped_;
    } else if (message.has_rejected()) {
      std::fprintf(stderr, "reattach_load: refused: %s\n", message.rejected().reason().c_str());
      std::_Exit(1);
    }
  }

  RealClock clock_;
  const std::string endpoint_;
  EventQueue<Event> events_;
  std::vector<Agent> agents_;
  std::set<std::pair<Time, int>> due_;  // attempts to come
  std::set<int> attached_;              // again
  size_t assigned_ = 0;
  int attempts_ = 0;
  int stopped_ = 0;
};

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fputs("usage: reattach_load ENDPOINT JOB AGENTS\n", stderr);
    return 2;
  }
  muster::Agents agents(argv[1], argv[2], std::atoi(argv[3]));
  agents.Join();
  std::puts("at joined");
  std::fflush(stdout);
  agents.AwaitReattachment();
  std::fflush(stdout);
  std::_Exit(0);  // the streams are open still
}
