#include "rendezvous/control_service.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/one_line.h"
#include "rendezvous/grpc_status.h"
#include "rendezvous/status_codec.h"
#include "rendezvous/unknown_job.h"

namespace muster {
namespace {

constexpr size_t kWhoBytesMax = 255;

// What cannot be meant is no limit, or the longest.
Duration SpanOf(int64_t ms) {
  const auto longest = std::chrono::floor<std::chrono::milliseconds>(kLongestTimeout);
  return std::chrono::milliseconds(std::clamp<int64_t>(ms, 0, longest.count()));
}

StatusQuery QueryOf(const v1::StatusRequest& request, bool once) {
  return {request.job_id(), request.summary() ? StatusDetail::kSummary : StatusDetail::kFull, once};
}

// What stands in the way of an answer to `job_id`.
absl::Status Check(const std::string& job_id, const std::shared_ptr<const MasterReport>& report) {
  if (report == nullptr) {
    return absl::ResourceExhaustedError("too many programs watch this master: end some of them");
  }
  if (report->jobs.empty() && !job_id.empty()) return UnknownJob(job_id, report->job_ids);
  return absl::OkStatus();
}

}  // namespace

// One watch. Writes one answer at a time, ends once. gRPC deletes it through OnDone; the service's
// table keeps it alive for calls that are under way.
class WatchStream final : public grpc::ServerWriteReactor<v1::StatusResponse> {
 public:
  WatchStream(ControlService* service, WatcherId id, std::string job_id)
      : service_(service), id_(id), job_id_(std::move(job_id)) {}

  // The loop's thread. False: the watch has ended.
  bool Tell(const std::shared_ptr<const MasterReport>& report) {
    if (const absl::Status status = Check(job_id_, report); !status.ok()) {
      End(ToGrpc(status));
      return false;
    }
    v1::StatusResponse response = Encode(*report, WallClockMs());
    MutexLock lock(&mutex_);
    if (end_.has_value()) return false;
    is_writing_ = true;
    response_ = std::move(response);
    StartWrite(&response_);
    return true;
  }

  void End(grpc::Status status) {
    MutexLock lock(&mutex_);
    if (end_.has_value()) return;
    end_ = std::move(status);
    if (!is_writing_) Finish(*end_);
  }

 private:
  void OnWriteDone(bool ok) override {
    {
      MutexLock lock(&mutex_);
      is_writing_ = false;
      if (end_.has_value()) return Finish(*end_);
    }
    if (ok) service_->loop_->Post(WatchResumed{id_});
  }

  void OnCancel() override {
    service_->loop_->Post(WatchEnded{id_});
    End(grpc::Status::CANCELLED);
  }

  void OnDone() override { service_->watches_.Remove(id_); }

  ControlService* const service_;
  const WatcherId id_;
  const std::string job_id_;

  Mutex mutex_;
  bool is_writing_ ABSL_GUARDED_BY(mutex_) = false;
  v1::StatusResponse response_;  // of the write that is under way
  std::optional<grpc::Status> end_ ABSL_GUARDED_BY(mutex_);
};

ControlService::ControlService(CallGuard* guard) : guard_(guard) {}
ControlService::~ControlService() = default;

grpc::ServerUnaryReactor* ControlService::GetStatus(grpc::CallbackServerContext* context,
                                                    const v1::StatusRequest* request,
                                                    v1::StatusResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  if (const grpc::Status allowed = guard_->Check(*context); !allowed.ok()) {
    reactor->Finish(allowed);
    return reactor;
  }
  const auto answer = [reactor, response, job_id = request->job_id()](
                          const std::shared_ptr<const MasterReport>& report) {
    const absl::Status status = Check(job_id, report);
    if (status.ok()) *response = Encode(*report, WallClockMs());
    reactor->Finish(ToGrpc(status));
    return false;
  };
  loop_->Post(muster::WatchStatus{NextWatcher(), QueryOf(*request, /*once=*/true), answer});
  return reactor;
}

grpc::ServerWriteReactor<v1::StatusResponse>* ControlService::WatchStatus(
    grpc::CallbackServerContext* context, const v1::StatusRequest* request) {
  const WatcherId id = NextWatcher();
  const auto stream = std::make_shared<WatchStream>(this, id, request->job_id());
  const grpc::Status allowed = guard_->Check(*context);
  const bool is_open = watches_.Add(id, stream);
  if (!allowed.ok()) {
    stream->End(allowed);
  } else if (!is_open) {
    stream->End(grpc::Status(grpc::StatusCode::UNAVAILABLE, "the master stops"));
  } else {
    loop_->Post(muster::WatchStatus{id, QueryOf(*request, /*once=*/false),
                                    [stream](const auto& report) { return stream->Tell(report); }});
  }
  return stream.get();
}

grpc::ServerUnaryReactor* ControlService::StopJob(grpc::CallbackServerContext* context,
                                                  const v1::StopJobRequest* request,
                                                  v1::StopJobResponse* response) {
  return Command(context, request->job_id(), request->who(),
                 StopRequested{OneLine(request->who())});
}

grpc::ServerUnaryReactor* ControlService::DrainJob(grpc::CallbackServerContext* context,
                                                   const v1::DrainJobRequest* request,
                                                   v1::DrainJobResponse* response) {
  return Command(context, request->job_id(), request->who(),
                 DrainRequested{"", OneLine(request->who()), SpanOf(request->at_most_ms())});
}

grpc::ServerUnaryReactor* ControlService::DrainNode(grpc::CallbackServerContext* context,
                                                    const v1::DrainNodeRequest* request,
                                                    v1::DrainNodeResponse* response) {
  if (request->node_id().empty() && guard_->Check(*context).ok()) {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "no node is named"));
    return reactor;
  }
  return Command(
      context, request->job_id(), request->who(),
      DrainRequested{request->node_id(), OneLine(request->who()), SpanOf(request->at_most_ms())});
}

grpc::ServerUnaryReactor* ControlService::Command(grpc::CallbackServerContext* context,
                                                  const std::string& job_id, const std::string& who,
                                                  RoundEvent event) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  if (const grpc::Status allowed = guard_->Check(*context); !allowed.ok()) {
    reactor->Finish(allowed);
    return reactor;
  }
  if (who.size() > kWhoBytesMax) {
    reactor->Finish(
        grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "who is longer than 255 bytes"));
    return reactor;
  }
  loop_->Post(JobCommand{job_id, std::move(event), [reactor](const absl::Status& status) {
                           reactor->Finish(ToGrpc(status));
                         }});
  return reactor;
}

void ControlService::CloseAll() {
  watches_.CloseAll([](WatchStream& stream) {
    stream.End(grpc::Status(grpc::StatusCode::UNAVAILABLE, "the master stops"));
  });
}

}  // namespace muster
