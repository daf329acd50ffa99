#include "rendezvous/standby_server.h"

#include <absl/strings/str_cat.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <utility>

#include "base/mutex.h"
#include "rendezvous/grpc_runtime.h"

namespace muster {
namespace {

class Refusal final : public grpc::ServerGenericBidiReactor {
 public:
  explicit Refusal(const std::string& text) {
    Finish(grpc::Status(grpc::StatusCode::UNAVAILABLE, text));
  }

 private:
  void OnDone() override { delete this; }
};

}  // namespace

class StandbyServer::Service final : public grpc::CallbackGenericService {
 public:
  void SetLeader(const std::string& address) {
    MutexLock lock(&mutex_);
    leader_ = address;
  }

 private:
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext*) override {
    MutexLock lock(&mutex_);
    return new Refusal(leader_.empty()
                           ? "this master stands by, and no other one is known to lead yet"
                           : absl::StrCat("this master stands by: the master is at ", leader_));
  }

  Mutex mutex_;
  std::string leader_ ABSL_GUARDED_BY(mutex_);
};

absl::StatusOr<std::unique_ptr<StandbyServer>> StandbyServer::Start(
    const HostPort& address, const std::shared_ptr<grpc::ServerCredentials>& credentials) {
  PrepareGrpc();
  std::unique_ptr<StandbyServer> standby(new StandbyServer);
  grpc::ServerBuilder builder;
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddListeningPort(ToString(address), credentials, &standby->port_);
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

StandbyServer::StandbyServer() : service_(std::make_unique<Service>()) {}

StandbyServer::~StandbyServer() {
  if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
}

int StandbyServer::port() const { return port_; }

void StandbyServer::SetLeader(const std::string& address) { service_->SetLeader(address); }

}  // namespace muster
