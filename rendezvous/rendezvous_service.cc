#include "rendezvous/rendezvous_service.h"

#include <deque>
#include <optional>
#include <utility>

#include "rendezvous/grpc_status.h"
#include "rendezvous/message_codec.h"
#include "rendezvous/peer_address.h"
#include "rendezvous/round_limits.h"

namespace muster {
namespace {

// An agent that lets so many messages wait does not read any more.
constexpr size_t kUnreadMax = 256;

}  // namespace

// One agent's stream. Reads one message at a time (Resume), writes one at a time from its queue,
// ends once. gRPC deletes it through OnDone; the service's table keeps it alive for calls that are
// under way.
class AttendStream final : public grpc::ServerBidiReactor<v1::AgentMessage, v1::MasterMessage> {
 public:
  AttendStream(RendezvousService* service, StreamId id, grpc::CallbackServerContext* context)
      : service_(service), id_(id), context_(context), peer_(PeerAddress(context->peer())) {}

  void Start() {
    context_->AddInitialMetadata(kGreeting, "1");
    StartSendInitialMetadata();
    StartRead(&incoming_);
  }

  void Send(const MasterMessage& message) {
    v1::MasterMessage wire = Encode(message);
    MutexLock lock(&mutex_);
    if (end_.has_value()) return;
    if (outgoing_.size() >= kUnreadMax) {
      outgoing_.resize(1);  // the one that is being written
      EndLocked(grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED,
                             "the agent does not read what the master sends"));
      context_->TryCancel();  // that one may never be done
      return;
    }
    outgoing_.push_back(std::move(wire));
    if (outgoing_.size() == 1) StartWrite(&outgoing_.front());
  }

  void Close(grpc::Status status) {
    MutexLock lock(&mutex_);
    EndLocked(std::move(status));
  }

  void Resume() {
    MutexLock lock(&mutex_);
    if (!end_.has_value()) StartRead(&incoming_);
  }

 private:
  void OnReadDone(bool ok) override {
    if (!ok) {
      const bool half_closed = !context_->IsCancelled();
      service_->loop_->Post(StreamBroken{.stream = id_, .half_closed = half_closed});
      Close(half_closed ? grpc::Status::OK : grpc::Status::CANCELLED);
      return;
    }
    absl::StatusOr<AgentMessage> message = Decode(incoming_);
    absl::Status status = message.status();
    if (status.ok()) status = CheckOrder(*message);
    if (!status.ok()) {
      service_->loop_->Post(StreamBroken{.stream = id_});
      Close(ToGrpc(status));
      return;
    }
    service_->loop_->Post(MessageArrived{id_, *std::move(message), peer_});
  }

  absl::Status CheckOrder(const AgentMessage& message) {
    const bool opens =
        std::holds_alternative<Hello>(message) || std::holds_alternative<LastWill>(message);
    if (opens == !std::exchange(has_spoken_, true)) return absl::OkStatus();
    return absl::InvalidArgumentError(
        opens ? "Hello and LastWill can only be the first message of a stream"
              : "the first message of a stream must be a Hello or a LastWill");
  }

  void OnWriteDone(bool ok) override {
    MutexLock lock(&mutex_);
    if (ok) {
      outgoing_.pop_front();
    } else {
      outgoing_.clear();  // the stream is broken; OnCancel tells
    }
    if (!outgoing_.empty()) {
      StartWrite(&outgoing_.front());
    } else if (end_.has_value()) {
      Finish(*end_);
    }
  }

  void OnCancel() override {
    service_->loop_->Post(StreamBroken{.stream = id_});
    Close(grpc::Status::CANCELLED);
  }

  void OnDone() override { service_->streams_.Remove(id_); }

  // Finish follows the writes that are queued.
  void EndLocked(grpc::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (end_.has_value()) return;
    end_ = std::move(status);
    if (outgoing_.empty()) Finish(*end_);
  }

  RendezvousService* const service_;
  const StreamId id_;
  grpc::CallbackServerContext* const context_;
  const std::string peer_;
  bool has_spoken_ = false;    // of the reading side only
  v1::AgentMessage incoming_;  // of the reading side only

  Mutex mutex_;
  std::deque<v1::MasterMessage> outgoing_ ABSL_GUARDED_BY(mutex_);  // the first is being written
  std::optional<grpc::Status> end_ ABSL_GUARDED_BY(mutex_);
};

// The end of a call that may not be made. A new agent is told that it is rejected, and ends; one
// that has workers keeps them and tries again, as do those who have to wait for room.
class RefusedStream final : public grpc::ServerBidiReactor<v1::AgentMessage, v1::MasterMessage> {
 public:
  explicit RefusedStream(grpc::Status status) : status_(std::move(status)) {
    if (status_.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED) {
      Finish(status_);
    } else {
      StartRead(&incoming_);
    }
  }

 private:
  void OnReadDone(bool ok) override {
    const bool is_new = ok && incoming_.has_hello() &&
                        incoming_.hello().running().phase() == v1::WORKERS_PHASE_NONE;
    if (!is_new) return Finish(status_);
    rejected_ = Encode(Rejected{kExitRefused, status_.error_message()});
    StartWriteAndFinish(&rejected_, grpc::WriteOptions(), status_);
  }

  void OnDone() override { delete this; }

  const grpc::Status status_;
  v1::AgentMessage incoming_;
  v1::MasterMessage rejected_;
};

RendezvousService::RendezvousService(Clock* clock, CallGuard* guard, const MasterLimits& limits)
    : clock_(clock), guard_(guard), gate_(limits) {}
RendezvousService::~RendezvousService() = default;

grpc::ServerBidiReactor<v1::AgentMessage, v1::MasterMessage>* RendezvousService::Attend(
    grpc::CallbackServerContext* context) {
  if (const grpc::Status admitted = Admit(*context); !admitted.ok()) {
    return new RefusedStream(admitted);
  }
  const StreamId id = streams_.NextId();
  const auto stream = std::make_shared<AttendStream>(this, id, context);
  streams_.Add(id, stream);
  loop_->Post(StreamOpened{id});
  stream->Start();
  return stream.get();
}

grpc::Status RendezvousService::Admit(const grpc::CallbackServerContext& context) {
  if (grpc::Status status = guard_->Check(context); !status.ok()) return status;
  MutexLock lock(&mutex_);
  const std::optional<std::string> refusal = gate_.Enter(clock_->Now(), streams_.size());
  if (!refusal.has_value()) return grpc::Status::OK;
  return {grpc::StatusCode::RESOURCE_EXHAUSTED, *refusal};
}

void RendezvousService::Send(StreamId stream, const MasterMessage& message) {
  if (const auto found = streams_.Find(stream)) found->Send(message);
}

void RendezvousService::Close(StreamId stream) {
  if (const auto found = streams_.Find(stream)) found->Close(grpc::Status::OK);
}

void RendezvousService::Resume(StreamId stream) {
  if (const auto found = streams_.Find(stream)) found->Resume();
}

void RendezvousService::CloseAll() {
  streams_.CloseAll([](AttendStream& stream) {
    stream.Close(grpc::Status(grpc::StatusCode::UNAVAILABLE, "the master stops"));
  });
}

}  // namespace muster
