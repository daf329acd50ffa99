#include "rendezvous/hosting.h"

#include <algorithm>
#include <utility>

#include "base/local_addresses.h"

namespace muster {

const std::vector<std::string>& AllAddresses() {
  static const auto* const kAll = new std::vector<std::string>{"::", "0.0.0.0"};
  return *kAll;
}

MasterServer::Options HostedServer(const ClusterOptions& options, const HostPort& address,
                                   MasterLoop::Options loop) {
  MasterServer::Options server;
  server.address = address;
  server.security = HostedSecurity(options);
  server.loop = std::move(loop);
  server.loop.registry.seed = options.seed;
  server.loop.on_decision = options.on_decision;
  return server;
}

ServerSecurity HostedSecurity(const ClusterOptions& options) {
  ServerSecurity security{.tls = {},
                          .allowed_peers = options.allowed_peers,
                          .token_file = options.security.token_file,
                          .insecure = !options.require_auth};
  if (!options.security.tls.cert.empty()) security.tls = options.security.tls;
  return security;
}

std::vector<std::string> HostingAddresses(const ClusterOptions& options,
                                          const std::vector<std::string>& resolved) {
  const bool lacks_certificate = options.security.has_tls() && options.security.tls.cert.empty();
  if (options.is_host == false || lacks_certificate) return {};
  std::vector<std::string> own;
  std::copy_if(resolved.begin(), resolved.end(), std::back_inserter(own), IsLocalAddress);
  if (own.empty()) return options.is_host == true ? AllAddresses() : own;
  const std::string& host = options.endpoints.front().host;
  const bool is_name = !IsAddressLiteral(host) && !IsLoopbackHost(host);
  if (is_name && std::all_of(own.begin(), own.end(), IsLoopbackHost)) return AllAddresses();
  return own;
}

absl::StatusOr<HostedMaster> TryHost(Clock* clock, const ClusterOptions& options,
                                     const std::vector<std::string>& resolved) {
  absl::Status last;
  for (const std::string& address : HostingAddresses(options, resolved)) {
    absl::StatusOr<std::unique_ptr<MasterServer>> server = MasterServer::Start(
        clock, HostedServer(options, {address, options.endpoints.front().port}));
    if (server.ok()) {
      if (options.on_hosting) options.on_hosting(ToString({address, (*server)->port()}));
      std::string dial = address == "::" ? "::1" : address == "0.0.0.0" ? "127.0.0.1" : address;
      return HostedMaster{*std::move(server), std::move(dial)};
    }
    last = server.status();
    if (absl::IsAlreadyExists(last)) break;  // a master is there: dial it
  }
  // In use, or an address that this host does not have after all: the master is elsewhere.
  if (last.ok() || absl::IsAlreadyExists(last) || absl::IsNotFound(last)) return HostedMaster{};
  return last;
}

}  // namespace muster
