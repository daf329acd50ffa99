#include "rendezvous/master_server.h"

#include <grpcpp/grpcpp.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/unique_fd.h"
#include "rendezvous/control_service.h"
#include "rendezvous/credentials.h"
#include "rendezvous/grpc_runtime.h"
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

absl::Status BindError(const HostPort& address, int error) {
  const std::string where = "cannot listen on " + ToString(address) + ": ";
  switch (error) {
    case EADDRINUSE:
      return absl::AlreadyExistsError(where + "the port is in use");
    case EADDRNOTAVAIL:
      return absl::NotFoundError(where + "this host does not have the address");
    case EACCES:
      return absl::PermissionDeniedError(where + "a port below 1024 needs privileges");
    default:
      return absl::UnavailableError(where + std::strerror(error));
  }
}

// gRPC tells only that it failed, not why; a bind of our own has an errno. The socket never
// listens, so nobody connects to it by mistake, and SO_REUSEADDR lets it fail exactly when somebody
// listens.
absl::Status ProbeBind(const HostPort& address) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(address.port);
  if (getaddrinfo(address.host.c_str(), port.c_str(), &hints, &found) != 0) {
    return absl::NotFoundError("cannot listen on " + ToString(address) + ": not an IP address");
  }
  int error = 0;
  const UniqueFd fd(socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  if (!fd.valid() || setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
      bind(fd.get(), found->ai_addr, found->ai_addrlen) != 0) {
    error = errno;
  }
  freeaddrinfo(found);
  return error == 0 ? absl::OkStatus() : BindError(address, error);
}

int MessageBytesMax(const MasterLimits& limits) {
  const size_t wanted = limits.message_bytes_max;
  return static_cast<int>(wanted == 0 ? kWireBytesMax : std::min(wanted, kWireBytesMax));
}

std::unique_ptr<grpc::Server> Listen(const MasterServer::Options& options,
                                     const std::shared_ptr<grpc::ServerCredentials>& credentials,
                                     RendezvousService* rendezvous, ControlService* control,
                                     int* port) {
  grpc::ServerBuilder builder;
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepAliveTimeMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepAliveTimeoutMs);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             kClientPingIntervalMinMs);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  builder.SetMaxReceiveMessageSize(MessageBytesMax(options.limits));
  builder.AddListeningPort(ToString(options.address), credentials, port);
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
  int port = 0;
};

absl::StatusOr<std::unique_ptr<MasterServer>> MasterServer::Start(Clock* clock, Options options) {
  PrepareGrpc();
  if (absl::Status status = CheckSecurity(options.security, options.address); !status.ok()) {
    return status;
  }
  if (absl::Status status = ProbeBind(options.address); !status.ok()) return status;
  const auto credentials = MakeServerCredentials(options.security.tls);
  if (!credentials.ok()) return credentials.status();
  absl::StatusOr<std::unique_ptr<CallGuard>> guard = CallGuard::Make(options.security);
  if (!guard.ok()) return guard.status();
  options.loop.registry.limits = options.limits;
  auto parts =
      std::make_unique<Parts>(clock, options.limits, std::move(options.loop), *std::move(guard));
  parts->server = Listen(options, *credentials, &parts->service, &parts->control, &parts->port);
  if (parts->server != nullptr && parts->port != 0) {
    TellHealth(parts->server.get(), true);
    return std::unique_ptr<MasterServer>(new MasterServer(std::move(parts)));
  }
  // Between the probe and gRPC's own bind somebody else took the port, or something else is wrong.
  if (absl::Status status = ProbeBind(options.address); !status.ok()) return status;
  return absl::UnavailableError("cannot listen on " + ToString(options.address) +
                                ": gRPC refused the address");
}

MasterServer::MasterServer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

MasterServer::~MasterServer() {
  // By the loop: else it would take the first stream that ends for a node that is lost, and tell
  // the others to stop.
  parts_->loop.Post(Retire{});
  parts_->control.CloseAll();
  parts_->server->Shutdown(std::chrono::system_clock::now() + kFlushTime);
  // Callbacks that wait for room in the queue are let go, then the last streams end.
  parts_->loop.Stop();
  parts_->server.reset();
}

int MasterServer::port() const { return parts_->port; }

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
