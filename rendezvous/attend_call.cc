#include "rendezvous/attend_call.h"

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <deque>
#include <utility>

#include "base/mutex.h"
#include "proto/rendezvous.grpc.pb.h"
#include "rendezvous/message_codec.h"

namespace muster {
namespace {

class Call final : public AttendCall,
                   public grpc::ClientBidiReactor<v1::AgentMessage, v1::MasterMessage> {
 public:
  Call(MasterChannel channel, Listener listener)
      : listener_(std::move(listener)),
        channel_(std::move(channel)),
        stub_(v1::Rendezvous::NewStub(channel_.channel())) {
    channel_.Authorize(&context_);
  }

  // gRPC holds `self` until OnDone.
  void Begin(std::shared_ptr<Call> self) {
    self_ = std::move(self);
    stub_->async()->Attend(&context_, this);
    AddHold();  // for the calls that come from outside the reactions; released when reading ends
    StartRead(&incoming_);
    StartCall();
  }

  void Send(const AgentMessage& message) override {
    v1::AgentMessage wire = Encode(message);
    MutexLock lock(&mutex_);
    if (ended_ || half_closed_) return;
    outgoing_.push_back(std::move(wire));
    if (outgoing_.size() == 1) StartWrite(&outgoing_.front());
  }

  void Resume() override {
    MutexLock lock(&mutex_);
    ReadLocked();
  }

  void HalfClose() override {
    MutexLock lock(&mutex_);
    if (ended_ || half_closed_) return;
    half_closed_ = true;
    if (outgoing_.empty()) StartWritesDone();
  }

  void Cancel() override {
    context_.TryCancel();
    MutexLock lock(&mutex_);
    ReadLocked();  // the end of the stream is only told to a reader
  }

 private:
  void ReadLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (ended_ || reading_) return;
    reading_ = true;
    StartRead(&incoming_);
  }

  void OnReadInitialMetadataDone(bool ok) override {
    if (ok && context_.GetServerInitialMetadata().count(kGreeting) != 0) heard_master_ = true;
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      MutexLock lock(&mutex_);
      reading_ = false;
      ended_ = true;
      RemoveHold();
      return;
    }
    heard_master_ = true;
    absl::StatusOr<MasterMessage> message = Decode(incoming_);
    {
      MutexLock lock(&mutex_);
      reading_ = false;
      if (!message.ok()) misunderstood_ = message.status();
    }
    if (!message.ok()) {
      Cancel();
      return;
    }
    if (listener_.on_message(*std::move(message))) Resume();
  }

  void OnWriteDone(bool ok) override {
    MutexLock lock(&mutex_);
    if (ok) {
      outgoing_.pop_front();
    } else {
      outgoing_.clear();
    }
    if (ended_) return;
    if (!outgoing_.empty()) {
      StartWrite(&outgoing_.front());
    } else if (ok && half_closed_) {
      StartWritesDone();
    }
  }

  void OnDone(const grpc::Status& status) override {
    const std::shared_ptr<Call> self = std::move(self_);
    absl::Status result(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
    {
      MutexLock lock(&mutex_);
      if (!misunderstood_.ok()) result = misunderstood_;
    }
    listener_.on_end(std::move(result), heard_master_);
  }

  const Listener listener_;
  const MasterChannel channel_;
  const std::unique_ptr<v1::Rendezvous::Stub> stub_;
  grpc::ClientContext context_;
  std::shared_ptr<Call> self_;
  v1::MasterMessage incoming_;  // of the read that is under way
  std::atomic<bool> heard_master_ = false;

  Mutex mutex_;
  std::deque<v1::AgentMessage> outgoing_ ABSL_GUARDED_BY(mutex_);  // the first is being written
  bool reading_ ABSL_GUARDED_BY(mutex_) = true;
  bool half_closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status misunderstood_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

std::shared_ptr<AttendCall> AttendCall::Start(MasterChannel channel, Listener listener) {
  auto call = std::make_shared<Call>(std::move(channel), std::move(listener));
  call->Begin(call);
  return call;
}

}  // namespace muster
