#include "rendezvous/master_channel.h"

#include <grpcpp/create_channel_posix.h>

#include <utility>
#include <vector>

#include "rendezvous/credential_files.h"
#include "rendezvous/credentials.h"
#include "rendezvous/grpc_runtime.h"

namespace muster {
namespace {

// The heartbeats judge whether the master answers; the pings only free connections whose other end
// is gone for good. A master that was stopped for a while finds the streams that it had.
constexpr int kKeepAliveTimeMs = 10'000;
constexpr int kKeepAliveTimeoutMs = 300'000;

grpc::ChannelArguments Arguments(size_t answer_bytes_max) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepAliveTimeMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepAliveTimeoutMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetMaxReceiveMessageSize(static_cast<int>(answer_bytes_max));
  return arguments;
}

// How gRPC writes the address.
std::string TargetOf(const Connection& connection) {
  const HostPort where{connection.address, connection.port};
  return (connection.address.find(':') == std::string::npos ? "ipv4:" : "ipv6:") + ToString(where);
}

std::shared_ptr<grpc::Channel> TlsChannel(
    const Connection& connection, const HostPort& endpoint, const ClientSecurity& security,
    const std::shared_ptr<grpc::ChannelCredentials>& credentials, Duration timeout,
    grpc::ChannelArguments arguments) {
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(timeout).count();
  arguments.SetSslTargetNameOverride(security.server_name.empty() ? endpoint.host
                                                                  : security.server_name);
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, ToString(endpoint));
  // Also the time that one attempt to connect may take.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, static_cast<int>(milliseconds));
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(TargetOf(connection), credentials, arguments);
}

}  // namespace

absl::StatusOr<MasterChannel> MasterChannel::Open(Connection connection, const HostPort& endpoint,
                                                  const ClientSecurity& security, Duration timeout,
                                                  size_t answer_bytes_max) {
  PrepareGrpc();
  MasterChannel result;
  if (!security.token_file.empty()) {
    if (!security.has_tls() && !IsLoopbackHost(connection.address)) {
      return CheckSecurity(security, {connection.address, connection.port});
    }
    absl::StatusOr<std::vector<std::string>> tokens = ReadTokens(security.token_file);
    if (!tokens.ok()) return tokens.status();
    result.token_ = std::move(tokens->front());
  }
  if (!security.has_tls()) {
    result.channel_ = grpc::CreateCustomInsecureChannelFromFd(
        ToString(endpoint), connection.fd.release(), Arguments(answer_bytes_max));
    return result;
  }
  const auto credentials = MakeChannelCredentials(security.tls);
  if (!credentials.ok()) return credentials.status();
  result.channel_ = TlsChannel(connection, endpoint, security, *credentials, timeout,
                               Arguments(answer_bytes_max));
  return result;
}

void MasterChannel::Authorize(grpc::ClientContext* context) const {
  if (!token_.empty()) context->AddMetadata("authorization", "Bearer " + token_);
}

}  // namespace muster
