#include "rendezvous/standby_server.h"

#include <absl/strings/str_cat.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <utility>

#include "base/mutex.h"
#include "rendezvous/credentials.h"
#include "rendezvous/grpc_runtime.h"
#include "rendezvous/standby_text.h"

namespace muster {
namespace {

class Refusal final : public grpc::ServerGenericBidiReactor {
 public:
  explicit Refusal(const grpc::Status& status) { Finish(status); }

 private:
  void OnDone() override { delete this; }
};

}  // namespace

class StandbyServer::Service final : public grpc::CallbackGenericService {
 public:
  explicit Service(std::unique_ptr<CallGuard> guard) : guard_(std::move(guard)) {}

  void SetLeader(const std::string& address) {
    MutexLock lock(&mutex_);
    leader_ = address;
  }

 private:
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    if (const grpc::Status status = guard_->Check(*context); !status.ok()) {
      return new Refusal(status);
    }
    MutexLock lock(&mutex_);
    return new Refusal({grpc::StatusCode::UNAVAILABLE, StandbyText(leader_)});
  }

  const std::unique_ptr<CallGuard> guard_;
  Mutex mutex_;
  std::string leader_ ABSL_GUARDED_BY(mutex_);
};

absl::StatusOr<std::unique_ptr<StandbyServer>> StandbyServer::Start(
    const HostPort& address, const ServerSecurity& security) {
  PrepareGrpc();
  const auto credentials = MakeServerCredentials(security.tls);
  if (!credentials.ok()) return credentials.status();
  absl::StatusOr<std::unique_ptr<CallGuard>> guard = CallGuard::Make(security);
  if (!guard.ok()) return guard.status();
  std::unique_ptr<StandbyServer> standby(
      new StandbyServer(std::make_unique<Service>(*std::move(guard))));
  grpc::ServerBuilder builder;
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddListeningPort(ToString(address), *credentials, &standby->port_);
  builder.RegisterCallbackGenericService(standby->service_.get());
  OfferHealth();
  standby->server_ = builder.BuildAndStart();
  if (standby->server_ == nullptr || standby->port_ == 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", ToString(address), " while another master leads"));
  }
  TellHealth(standby->server_.get(), false);
  return standby;
}

StandbyServer::StandbyServer(std::unique_ptr<Service> service) : service_(std::move(service)) {}

StandbyServer::~StandbyServer() {
  if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
}

int StandbyServer::port() const { return port_; }

void StandbyServer::SetLeader(const std::string& address) { service_->SetLeader(address); }

}  // namespace muster
