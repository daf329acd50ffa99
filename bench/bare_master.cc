// The least a master can be: counts messages of one job and answers when all have come. What a real
// one costs beyond gRPC itself is measured against it, with the same client (attend_load).
//
//   bare_master        listens on a free port of 127.0.0.1 and prints it; ends when its input does
#include <grpcpp/grpcpp.h>

#include <deque>
#include <functional>
#include <iostream>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "proto/rendezvous.grpc.pb.h"

namespace muster {
namespace {

class Stream;

// All state, under one lock.
struct Barrier {
  std::mutex mutex;
  std::vector<Stream*> streams;
  int expected = 0;
  int here = 0;  // waiting for the next generation
  int succeeded = 0;
  int64_t generation = 0;
};

class Stream final : public grpc::ServerBidiReactor<v1::AgentMessage, v1::MasterMessage> {
 public:
  explicit Stream(Barrier* barrier) : barrier_(barrier) { StartRead(&incoming_); }

  void Send(const v1::MasterMessage& message) {
    std::lock_guard lock(mutex_);
    outgoing_.push_back(message);
    if (outgoing_.size() == 1) StartWrite(&outgoing_.front());
  }

 private:
  void OnReadDone(bool ok) override {
    if (!ok) {
      Leave();
      Finish(grpc::Status::OK);
      return;
    }
    Handle();
    StartRead(&incoming_);
  }

  void Handle() {
    std::lock_guard lock(barrier_->mutex);
    if (incoming_.has_hello()) {
      barrier_->expected = incoming_.hello().settings().nodes_max();
      barrier_->streams.push_back(this);
      Arrive();
    } else if (incoming_.has_workers_stopped()) {
      Arrive();
    } else if (incoming_.has_worker_failed()) {
      StopAllBut(this);
    } else if (incoming_.has_workers_succeeded()) {
      if (++barrier_->succeeded == barrier_->expected) {
        v1::MasterMessage message;
        message.mutable_verdict()->set_succeeded(true);
        for (Stream* stream : barrier_->streams) stream->Send(message);
      }
    } else if (incoming_.has_heartbeat()) {
      v1::MasterMessage message;
      message.mutable_heartbeat_ack()->set_sequence(incoming_.heartbeat().sequence());
      Send(message);
    }
  }

  void Arrive() {
    if (++barrier_->here != barrier_->expected) return;
    barrier_->here = 0;
    ++barrier_->generation;
    for (size_t i = 0; i < barrier_->streams.size(); ++i) {
      v1::MasterMessage message;
      v1::Assignment* assignment = message.mutable_assignment();
      assignment->set_generation(barrier_->generation);
      assignment->set_group_rank(static_cast<int>(i));
      assignment->set_group_world_size(barrier_->expected);
      assignment->set_master_addr("127.0.0.1");
      assignment->set_master_port(20000);
      barrier_->streams[i]->Send(message);
    }
  }

  void StopAllBut(const Stream* one) {
    v1::MasterMessage message;
    message.mutable_stop_workers()->set_generation(barrier_->generation);
    for (Stream* stream : barrier_->streams) {
      if (stream != one) stream->Send(message);
    }
  }

  void Leave() {
    std::lock_guard lock(barrier_->mutex);
    std::vector<Stream*>& streams = barrier_->streams;
    for (size_t i = 0; i < streams.size(); ++i) {
      if (streams[i] != this) continue;
      streams.erase(streams.begin() + static_cast<int64_t>(i));
      break;
    }
    if (barrier_->succeeded == 0) StopAllBut(this);
  }

  void OnWriteDone(bool ok) override {
    std::lock_guard lock(mutex_);
    outgoing_.pop_front();
    if (!ok) return outgoing_.clear();
    if (!outgoing_.empty()) StartWrite(&outgoing_.front());
  }

  void OnDone() override { delete this; }

  Barrier* const barrier_;
  v1::AgentMessage incoming_;
  std::mutex mutex_;
  std::deque<v1::MasterMessage> outgoing_;  // the first is being written
};

class Service final : public v1::Rendezvous::CallbackService {
 public:
  grpc::ServerBidiReactor<v1::AgentMessage, v1::MasterMessage>* Attend(
      grpc::CallbackServerContext*) override {
    return new Stream(&barrier_);
  }

 private:
  Barrier barrier_;
};

}  // namespace
}  // namespace muster

int main() {
  muster::Service service;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  std::cout << port << std::endl;
  std::string line;
  while (std::getline(std::cin, line)) {
  }
  server->Shutdown(std::chrono::system_clock::now());
  return 0;
}
