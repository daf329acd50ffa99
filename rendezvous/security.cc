#include "rendezvous/security.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>

#include <algorithm>

namespace muster {
namespace {

absl::Status CheckPair(const TlsFiles& tls) {
  if (tls.cert.empty() == tls.key.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(tls.cert.empty()
                                        ? "--tls-key without its certificate: give --tls-cert, too"
                                        : "--tls-cert without its key: give --tls-key, too");
}

absl::Status InTheClear(const HostPort& where) {
  return absl::FailedPreconditionError(absl::StrCat(
      "--token-file: without TLS the token could be read on its way to ", ToString(where)));
}

bool IsNamed(const std::string& allowed, const std::string& name) {
  if (absl::StrContains(allowed, "://")) return allowed == name;
  if (!absl::StartsWith(allowed, "*.")) return absl::EqualsIgnoreCase(allowed, name);
  const size_t dot = name.find('.');
  return dot != std::string::npos && dot > 0 &&
         absl::EqualsIgnoreCase(absl::string_view(allowed).substr(1),
                                absl::string_view(name).substr(dot));
}

}  // namespace

absl::Status CheckSecurity(const ServerSecurity& security, const HostPort& listen) {
  if (absl::Status status = CheckPair(security.tls); !status.ok()) return status;
  if (!security.tls.ca.empty() && !security.has_tls()) {
    return absl::InvalidArgumentError(
        "--tls-ca says whose certificates are taken, but without one of its own the master speaks "
        "no TLS: give --tls-cert and --tls-key");
  }
  if (!security.allowed_peers.empty() && security.tls.ca.empty()) {
    return absl::InvalidArgumentError(
        "--allowed-peers are names in certificates: say with --tls-ca whose certificates are "
        "taken");
  }
  if (security.has_tls() || IsLoopbackHost(listen.host)) return absl::OkStatus();
  if (!security.token_file.empty()) {
    const absl::Status status = InTheClear(listen);
    return absl::Status(status.code(),
                        absl::StrCat(status.message(), ": give --tls-cert and --tls-key"));
  }
  if (security.insecure) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "anybody who reaches ", ToString(listen),
      " could take part in every job: give --tls-cert "
      "and --tls-key with --tls-ca or --token-file, listen on 127.0.0.1, or say --insecure"));
}

absl::Status CheckSecurity(const ClientSecurity& security, const HostPort& endpoint) {
  if (absl::Status status = CheckPair(security.tls); !status.ok()) return status;
  if (security.has_tls()) return absl::OkStatus();
  if (!security.tls.cert.empty() || !security.server_name.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        security.tls.cert.empty() ? "--tls-server-name" : "--tls-cert",
        " means nothing without TLS: say with --tls-ca whose certificate the master has"));
  }
  if (security.token_file.empty() || IsLoopbackHost(endpoint.host)) return absl::OkStatus();
  const absl::Status status = InTheClear(endpoint);
  return absl::Status(status.code(), absl::StrCat(status.message(), ": give --tls-ca"));
}

bool IsAllowedPeer(const std::vector<std::string>& allowed, const std::vector<std::string>& names) {
  return std::any_of(allowed.begin(), allowed.end(), [&](const std::string& entry) {
    return std::any_of(names.begin(), names.end(),
                       [&](const std::string& name) { return IsNamed(entry, name); });
  });
}

}  // namespace muster
