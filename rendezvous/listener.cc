#include "rendezvous/listener.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

namespace muster {
namespace {

// For what else the process opens: files of its state and its credentials, connections to etcd.
constexpr rlim_t kReservedDescriptors = 64;
// What was sent and is not acknowledged by the other end's kernel for so long ends the connection.
constexpr int kUserTimeoutMs = 300'000;
// Who connects and opens no call, or none any more, gives its descriptor back.
constexpr int kHandshakeTimeoutMs = 30'000;
constexpr int kIdleTimeoutMs = 60'000;
// After an accept that failed for want of memory.
constexpr int kBreathMs = 100;
constexpr int kNoAddress = -1;  // among the system's errors

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

void SetOption(int fd, int level, int option, int value) {
  setsockopt(fd, level, option, &value, sizeof(value));
}

// 0, or the error. A socket accepted here has these options, too.
int BindAndListen(const addrinfo& address, UniqueFd* socket_fd) {
  UniqueFd fd(socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return errno;
  // Binding fails all the same where somebody listens.
  SetOption(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  SetOption(fd.get(), IPPROTO_TCP, TCP_NODELAY, 1);
  SetOption(fd.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, kUserTimeoutMs);
  if (address.ai_family == AF_INET6) SetOption(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
  if (bind(fd.get(), address.ai_addr, address.ai_addrlen) != 0 ||
      listen(fd.get(), SOMAXCONN) != 0) {
    return errno;
  }
  *socket_fd = std::move(fd);
  return 0;
}

int BindAndListen(const std::string& host, int port, UniqueFd* fd) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) {
    return kNoAddress;
  }
  const int error = BindAndListen(*found, fd);
  freeaddrinfo(found);
  return error;
}

int PortOf(int fd) {
  sockaddr_in6 address{};  // the port is where it is in a sockaddr_in
  socklen_t length = sizeof(address);
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length);
  return ntohs(address.sin6_port);
}

UniqueFd OpenSpare() { return UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC)); }

}  // namespace

absl::StatusOr<std::unique_ptr<Listener>> Listener::Bind(const HostPort& address) {
  UniqueFd fd;
  int error = 0;
  // All addresses of IPv4 are served with those of IPv6, where the host has any.
  if (address.host == "0.0.0.0") error = BindAndListen("::", address.port, &fd);
  if (!fd.valid() && error != EADDRINUSE) error = BindAndListen(address.host, address.port, &fd);
  if (error == kNoAddress) {
    return absl::NotFoundError("cannot listen on " + ToString(address) + ": not an IP address");
  }
  if (error != 0) return BindError(address, error);
  const int port = PortOf(fd.get());
  return std::unique_ptr<Listener>(new Listener(std::move(fd), port));
}

Listener::Listener(UniqueFd socket, int port)
    : socket_(std::move(socket)),
      stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      port_(port),
      spare_(OpenSpare()) {}

Listener::~Listener() {
  if (!thread_.joinable()) return;
  const uint64_t one = 1;
  static_cast<void>(!write(stop_.get(), &one, sizeof(one)));
  thread_.join();
}

void Listener::Attach(grpc::ServerBuilder* builder,
                      const std::shared_ptr<grpc::ServerCredentials>& credentials) {
  builder->AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeTimeoutMs);
  builder->AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kIdleTimeoutMs);
  using Type = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  server_ = builder->experimental().AddExternalConnectionAcceptor(Type::FROM_FD, credentials);
}

void Listener::Start() {
  thread_ = std::thread([this] { Run(); });
  pthread_setname_np(thread_.native_handle(), "accept");
}

void Listener::Run() {
  pollfd ready[] = {{stop_.get(), POLLIN, 0}, {socket_.get(), POLLIN, 0}};
  for (;;) {
    if (poll(ready, 2, -1) < 0) continue;
    if (ready[0].revents != 0) return;
    if (ready[1].revents != 0) Accept();
  }
}

void Listener::Accept() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  UniqueFd fd(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd.valid()) return Recover(errno);
  // The kernel gives the lowest number that is free.
  const bool is_scarce = static_cast<rlim_t>(fd.get()) + kReservedDescriptors >= limit.rlim_cur;
  if (is_scarce && limit.rlim_cur > 2 * kReservedDescriptors) return;
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
  connection.listener_fd = socket_.get();
  connection.fd = fd.release();
  server_->HandleNewConnection(&connection);
}

// From a failed accept: who is first in the queue must not keep it busy.
void Listener::Recover(int error) {
  if (error != EMFILE && error != ENFILE && error != ENOBUFS && error != ENOMEM) return;
  if (spare_.valid()) {
    spare_.reset();
    const UniqueFd turned_away(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  } else {
    pollfd stop{stop_.get(), POLLIN, 0};
    poll(&stop, 1, kBreathMs);
  }
  spare_ = OpenSpare();
}

}  // namespace muster
