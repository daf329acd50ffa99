#include "rendezvous/control_client.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "proto/status.grpc.pb.h"
#include "rendezvous/dial.h"
#include "rendezvous/master_channel.h"
#include "rendezvous/master_dial.h"
#include "rendezvous/round_limits.h"
#include "rendezvous/stream_end_text.h"
#include "rendezvous/tls_refusal.h"

namespace muster {
namespace {

// One try is all there is: a connection that is closed at once was refused.
constexpr int kOften = 1000;

// A job of ten thousand nodes is told in about 2 MB.
constexpr size_t kAnswerBytesMax = 64 * 1024 * 1024;

class Client final : public ControlClient {
 public:
  Client(HostPort endpoint, ClientSecurity security, MasterChannel channel, Duration timeout)
      : endpoint_(std::move(endpoint)),
        security_(std::move(security)),
        timeout_(timeout),
        channel_(std::move(channel)),
        stub_(v1::Control::NewStub(channel_.channel())) {}

  absl::StatusOr<v1::StatusResponse> GetStatus(const v1::StatusRequest& request) override {
    grpc::ClientContext context;
    context.set_deadline(Deadline());
    channel_.Authorize(&context);
    v1::StatusResponse response;
    absl::Status status = FromGrpc(stub_->GetStatus(&context, request, &response));
    if (!status.ok()) return status;
    return response;
  }

  absl::Status WatchStatus(const v1::StatusRequest& request,
                           const std::function<bool(const v1::StatusResponse&)>& take) override {
    grpc::ClientContext context;
    channel_.Authorize(&context);
    const auto reader = stub_->WatchStatus(&context, request);
    v1::StatusResponse response;
    bool has_heard = false;
    while (reader->Read(&response)) {
      has_heard = true;
      if (take(response)) continue;
      context.TryCancel();
      reader->Finish();
      return absl::OkStatus();
    }
    const absl::Status status = FromGrpc(reader->Finish(), has_heard);
    return status.ok() ? absl::UnavailableError(ToString(endpoint_) + ": the master has gone")
                       : status;
  }

  absl::Status StopJob(const v1::StopJobRequest& request) override {
    v1::StopJobResponse response;
    return Call(&v1::Control::Stub::StopJob, request, &response);
  }
  absl::Status DrainJob(const v1::DrainJobRequest& request) override {
    v1::DrainJobResponse response;
    return Call(&v1::Control::Stub::DrainJob, request, &response);
  }
  absl::Status DrainNode(const v1::DrainNodeRequest& request) override {
    v1::DrainNodeResponse response;
    return Call(&v1::Control::Stub::DrainNode, request, &response);
  }

 private:
  template <typename Request, typename Response>
  absl::Status Call(grpc::Status (v1::Control::Stub::*method)(grpc::ClientContext*, const Request&,
                                                              Response*),
                    const Request& request, Response* response) {
    grpc::ClientContext context;
    context.set_deadline(Deadline());
    channel_.Authorize(&context);
    return FromGrpc((stub_.get()->*method)(&context, request, response));
  }

  std::chrono::system_clock::time_point Deadline() const {
    return std::chrono::system_clock::now() + timeout_;
  }

  // What the master itself says stands for itself; what keeps it from saying anything names it.
  absl::Status FromGrpc(const grpc::Status& status, bool has_heard = false) const {
    const std::string where = ToString(endpoint_) + ": ";
    const std::string& text = status.error_message();
    switch (status.error_code()) {
      case grpc::StatusCode::OK:
        return absl::OkStatus();
      case grpc::StatusCode::NOT_FOUND:
        return absl::NotFoundError(text);
      case grpc::StatusCode::FAILED_PRECONDITION:
        return absl::FailedPreconditionError(text);
      case grpc::StatusCode::UNAUTHENTICATED:
      case grpc::StatusCode::PERMISSION_DENIED:
        return absl::UnauthenticatedError(where + text);
      case grpc::StatusCode::UNAVAILABLE: {
        const auto refusal = TlsRefusal(endpoint_, security_, absl::UnavailableError(text), kOften);
        if (refusal && !has_heard) {
          return refusal->exit_code == kExitBadSettings
                     ? absl::UnimplementedError(refusal->reason)
                     : absl::UnauthenticatedError(refusal->reason);
        }
        return absl::UnavailableError(where + text);
      }
      case grpc::StatusCode::DEADLINE_EXCEEDED:
        return absl::DeadlineExceededError(where + "the master does not answer");
      case grpc::StatusCode::INTERNAL:
      case grpc::StatusCode::UNKNOWN:
      case grpc::StatusCode::UNIMPLEMENTED:
        return absl::UnimplementedError(
            where + "what listens there is not a muster master, or an older one (" + text + ")");
      default:
        return absl::InternalError(where + text);
    }
  }

  const HostPort endpoint_;
  const ClientSecurity security_;
  const Duration timeout_;
  const MasterChannel channel_;
  const std::unique_ptr<v1::Control::Stub> stub_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ControlClient>> ControlClient::Connect(
    const HostPort& endpoint, const ClientSecurity& security, Duration timeout) {
  const auto failed = [&](const absl::Status& status) {
    const std::string where = DialFailureText(endpoint, status);
    if (absl::IsUnimplemented(status)) return absl::UnimplementedError(where);
    const std::string text = "no master at " + where;
    if (absl::IsFailedPrecondition(status) || absl::IsOutOfRange(status))
      return absl::UnimplementedError(text);
    if (absl::IsDeadlineExceeded(status)) return absl::DeadlineExceededError(text);
    return absl::UnavailableError(text);
  };
  const absl::StatusOr<std::vector<std::string>> addresses = ResolveHost(endpoint.host);
  if (!addresses.ok()) return failed(addresses.status());
  absl::StatusOr<Connection> connection =
      DialMaster(*addresses, endpoint.port, timeout, /*cancel_fd=*/-1, security.has_tls());
  if (!connection.ok()) return failed(connection.status());
  absl::StatusOr<MasterChannel> channel =
      MasterChannel::Open(*std::move(connection), endpoint, security, timeout, kAnswerBytesMax);
  if (!channel.ok()) return absl::UnauthenticatedError(channel.status().message());
  return std::make_unique<Client>(endpoint, security, *std::move(channel), timeout);
}

}  // namespace muster
