#include "rendezvous/control_client.h"

#include <grpcpp/create_channel_posix.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "proto/status.grpc.pb.h"
#include "rendezvous/dial.h"
#include "rendezvous/grpc_runtime.h"
#include "rendezvous/master_dial.h"
#include "rendezvous/stream_end_text.h"

namespace muster {
namespace {

// A job of ten thousand nodes is told in about 2 MB.
constexpr int kAnswerBytesMax = 64 * 1024 * 1024;

class Client final : public ControlClient {
 public:
  Client(HostPort endpoint, Connection connection, Duration timeout)
      : endpoint_(std::move(endpoint)), timeout_(timeout) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(kAnswerBytesMax);
    stub_ = v1::Control::NewStub(grpc::CreateCustomInsecureChannelFromFd(
        ToString(endpoint_), connection.fd.release(), arguments));
  }

  absl::StatusOr<v1::StatusResponse> GetStatus(const v1::StatusRequest& request) override {
    grpc::ClientContext context;
    context.set_deadline(Deadline());
    v1::StatusResponse response;
    absl::Status status = FromGrpc(stub_->GetStatus(&context, request, &response));
    if (!status.ok()) return status;
    return response;
  }

  absl::Status WatchStatus(const v1::StatusRequest& request,
                           const std::function<bool(const v1::StatusResponse&)>& take) override {
    grpc::ClientContext context;
    const auto reader = stub_->WatchStatus(&context, request);
    v1::StatusResponse response;
    while (reader->Read(&response)) {
      if (take(response)) continue;
      context.TryCancel();
      reader->Finish();
      return absl::OkStatus();
    }
    const absl::Status status = FromGrpc(reader->Finish());
    return status.ok() ? absl::UnavailableError(ToString(endpoint_) + ": the master has gone")
                       : status;
  }

  absl::Status StopJob(const v1::StopJobRequest& request) override {
    grpc::ClientContext context;
    context.set_deadline(Deadline());
    v1::StopJobResponse response;
    return FromGrpc(stub_->StopJob(&context, request, &response));
  }

 private:
  std::chrono::system_clock::time_point Deadline() const {
    return std::chrono::system_clock::now() + timeout_;
  }

  // What the master itself says stands for itself; what keeps it from saying anything names it.
  absl::Status FromGrpc(const grpc::Status& status) const {
    const std::string where = ToString(endpoint_) + ": ";
    const std::string& text = status.error_message();
    switch (status.error_code()) {
      case grpc::StatusCode::OK:
        return absl::OkStatus();
      case grpc::StatusCode::NOT_FOUND:
        return absl::NotFoundError(text);
      case grpc::StatusCode::FAILED_PRECONDITION:
        return absl::FailedPreconditionError(text);
      case grpc::StatusCode::UNAVAILABLE:
        return absl::UnavailableError(where + text);
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
  const Duration timeout_;
  std::unique_ptr<v1::Control::Stub> stub_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ControlClient>> ControlClient::Connect(const HostPort& endpoint,
                                                                      Duration timeout) {
  PrepareGrpc();
  const auto failed = [&](const absl::Status& status) {
    const std::string text = "no master at " + DialFailureText(endpoint, status);
    if (absl::IsFailedPrecondition(status)) return absl::UnimplementedError(text);
    if (absl::IsDeadlineExceeded(status)) return absl::DeadlineExceededError(text);
    return absl::UnavailableError(text);
  };
  const absl::StatusOr<std::vector<std::string>> addresses = ResolveHost(endpoint.host);
  if (!addresses.ok()) return failed(addresses.status());
  absl::StatusOr<Connection> connection =
      DialMaster(*addresses, endpoint.port, timeout, /*cancel_fd=*/-1);
  if (!connection.ok()) return failed(connection.status());
  return std::make_unique<Client>(endpoint, *std::move(connection), timeout);
}

}  // namespace muster
