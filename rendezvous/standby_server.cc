#include "rendezvous/standby_server.h"

#include <absl/strings/str_cat.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <utility>

#include "base/mutex.h"
#include "rendezvous/credentials.h"
#include "rendezvous/grpc_runtime.h"
#include "rendezvous/listener.h"
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
  absl::StatusOr<std::unique_ptr<Listener>> listener = Listener::Bind(address);
  if (!listener.ok()) return listener.status();
  standby->listener_ = *std::move(listener);
  grpc::ServerBuilder builder;
  standby->listener_->Attach(&builder, *credentials);
  builder.RegisterCallbackGenericService(standby->service_.get());
  OfferHealth();
  standby->server_ = builder.BuildAndStart();
  if (standby->server_ == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("cannot serve on ", ToString(address), ": gRPC does not start"));
  }
  TellHealth(standby->server_.get(), false);
  standby->listener_->Start();
  return standby;
}

StandbyServer::StandbyServer(std::unique_ptr<Service> service) : service_(std::move(service)) {}

StandbyServer::~StandbyServer() {
  listener_.reset();
  if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
}

int StandbyServer::port() const { return listener_->port(); }

void StandbyServer::SetLeader(const std::string& address) { service_->SetLeader(address); }

}  // namespace muster
