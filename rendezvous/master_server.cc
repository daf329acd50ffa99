#include "rendezvous/master_server.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <utility>

#include "rendezvous/control_service.h"
#include "rendezvous/credentials.h"
#include "rendezvous/grpc_runtime.h"
#include "rendezvous/listener.h"
#include "rendezvous/message_codec.h"
#include "rendezvous/rendezvous_service.h"

namespace muster {
namespace {

constexpr auto kFlushTime = std::chrono::milliseconds(500);

// The heartbeats judge whether an agent lives; these only free connections whose other end is gone
// for good.
constexpr int kKeepAliveTimeMs = 30'000;
constexpr int kKeepAliveTimeoutMs = 300'000;
// Clients ping every 10 s (attend_call.cc); the slack keeps a delayed ping from looking like abuse.
constexpr int kClientPingIntervalMinMs = 5'000;

int MessageBytesMax(const MasterLimits& limits) {
  const size_t wanted = limits.message_bytes_max;
  return static_cast<int>(wanted == 0 ? kWireBytesMax : std::min(wanted, kWireBytesMax));
}

std::unique_ptr<grpc::Server> Build(const MasterServer::Options& options,
                                    const std::shared_ptr<grpc::ServerCredentials>& credentials,
                                    Listener* listener, RendezvousService* rendezvous,
                                    ControlService* control) {
  grpc::ServerBuilder builder;
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepAliveTimeMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepAliveTimeoutMs);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             kClientPingIntervalMinMs);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  builder.SetMaxReceiveMessageSize(MessageBytesMax(options.limits));
  listener->Attach(&builder, credentials);
  builder.RegisterService(rendezvous);
  builder.RegisterService(control);
  OfferHealth();
  return builder.BuildAndStart();
}

}  // namespace

struct MasterServer::Parts {
  Parts(Clock* clock, const MasterLimits& limits, MasterLoop::Options loop_options,
        std::unique_ptr<CallGuard> call_guard)
      : guard(std::move(call_guard)),
        service(clock, guard.get(), limits),
        control(guard.get()),
        loop(clock, &service, std::move(loop_options)) {
    service.SetLoop(&loop);
    control.SetLoop(&loop);
  }

  const std::unique_ptr<CallGuard> guard;
  RendezvousService service;
  ControlService control;
  MasterLoop loop;
  std::unique_ptr<grpc::Server> server;
  std::unique_ptr<Listener> listener;
};

absl::StatusOr<std::unique_ptr<MasterServer>> MasterServer::Start(Clock* clock, Options options) {
  PrepareGrpc();
  if (absl::Status status = CheckSecurity(options.security, options.address); !status.ok()) {
    return status;
  }
  absl::StatusOr<std::unique_ptr<Listener>> listener = Listener::Bind(options.address);
  if (!listener.ok()) return listener.status();
  const auto credentials = MakeServerCredentials(options.security.tls);
  if (!credentials.ok()) return credentials.status();
  absl::StatusOr<std::unique_ptr<CallGuard>> guard = CallGuard::Make(options.security);
  if (!guard.ok()) return guard.status();
  options.loop.registry.limits = options.limits;
  auto parts =
      std::make_unique<Parts>(clock, options.limits, std::move(options.loop), *std::move(guard));
  parts->listener = *std::move(listener);
  parts->server =
      Build(options, *credentials, parts->listener.get(), &parts->service, &parts->control);
  if (parts->server == nullptr) {
    return absl::UnavailableError("cannot serve on " + ToString(options.address) +
                                  ": gRPC does not start");
  }
  TellHealth(parts->server.get(), true);
  parts->listener->Start();
  return std::unique_ptr<MasterServer>(new MasterServer(std::move(parts)));
}

MasterServer::MasterServer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

MasterServer::~MasterServer() {
  parts_->listener.reset();
  // By the loop: else it would take the first stream that ends for a node that is lost, and tell
  // the others to stop.
  parts_->loop.Post(Retire{});
  parts_->control.CloseAll();
  parts_->server->Shutdown(std::chrono::system_clock::now() + kFlushTime);
  // Callbacks that wait for room in the queue are let go, then the last streams end.
  parts_->loop.Stop();
  parts_->server.reset();
}

int MasterServer::port() const { return parts_->listener->port(); }

void MasterServer::TellWhenIdle(std::function<void()> callback) {
  parts_->loop.Post(muster::TellWhenIdle{std::move(callback)});
}

void MasterServer::Ping(std::function<void()> callback) {
  parts_->loop.Post(muster::Ping{std::move(callback)});
}

void MasterServer::Ask(StatusQuery query, StatusCallback callback) {
  query.once = true;
  parts_->loop.Post(
      WatchStatus{parts_->control.NextWatcher(), std::move(query), std::move(callback)});
}

}  // namespace muster
