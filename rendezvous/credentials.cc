#include "rendezvous/credentials.h"

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "rendezvous/credential_files.h"

namespace muster {
namespace {

constexpr unsigned kRefreshSeconds = 1;
constexpr std::string_view kBearer = "Bearer ";

bool IsSameFile(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_size == b.st_size &&
         a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

grpc::Status Unauthenticated(const char* why) { return {grpc::StatusCode::UNAUTHENTICATED, why}; }

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(
    const TlsFiles& tls) {
  if (tls.cert.empty()) return grpc::InsecureServerCredentials();
  if (const auto checked = CheckTlsFiles(tls); !checked.ok()) return checked.status();
  using grpc::experimental::FileWatcherCertificateProvider;
  grpc::experimental::TlsServerCredentialsOptions options(
      std::make_shared<FileWatcherCertificateProvider>(tls.key, tls.cert, tls.ca, kRefreshSeconds));
  options.watch_identity_key_cert_pairs();
  if (!tls.ca.empty()) {
    options.watch_root_certs();
    options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  }
  return grpc::experimental::TlsServerCredentials(options);
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeChannelCredentials(
    const TlsFiles& tls) {
  if (tls.ca.empty()) return grpc::InsecureChannelCredentials();
  if (const auto checked = CheckTlsFiles(tls); !checked.ok()) return checked.status();
  grpc::SslCredentialsOptions options;
  absl::StatusOr<std::string> ca = ReadCredentialFile(tls.ca);
  if (!ca.ok()) return ca.status();
  options.pem_root_certs = *std::move(ca);
  if (!tls.cert.empty()) {
    absl::StatusOr<std::string> cert = ReadCredentialFile(tls.cert);
    if (!cert.ok()) return cert.status();
    absl::StatusOr<std::string> key = ReadCredentialFile(tls.key);
    if (!key.ok()) return key.status();
    options.pem_cert_chain = *std::move(cert);
    options.pem_private_key = *std::move(key);
  }
  return grpc::SslCredentials(options);
}

absl::StatusOr<std::unique_ptr<CallGuard>> CallGuard::Make(const ServerSecurity& security) {
  std::unique_ptr<CallGuard> guard(new CallGuard(security));
  if (absl::Status status = guard->Refresh(); !status.ok()) return status;
  return guard;
}

absl::Status CallGuard::Refresh() {
  if (security_.token_file.empty()) return absl::OkStatus();
  MutexLock lock(&mutex_);
  struct stat now {};
  const bool is_there = stat(security_.token_file.c_str(), &now) == 0;
  if (is_there && IsSameFile(now, read_)) return absl::OkStatus();
  absl::StatusOr<std::vector<std::string>> tokens = ReadTokens(security_.token_file);
  if (!tokens.ok()) return tokens.status();
  tokens_ = *std::move(tokens);
  read_ = now;
  return absl::OkStatus();
}

grpc::Status CallGuard::Check(const grpc::ServerContextBase& context) {
  const grpc::Status peer = CheckPeer(context);
  return peer.ok() ? CheckToken(context) : peer;
}

grpc::Status CallGuard::CheckPeer(const grpc::ServerContextBase& context) const {
  if (security_.allowed_peers.empty()) return grpc::Status::OK;
  std::vector<std::string> names;
  for (const grpc::string_ref& name : context.auth_context()->GetPeerIdentity()) {
    names.emplace_back(name.data(), name.size());
  }
  if (IsAllowedPeer(security_.allowed_peers, names)) return grpc::Status::OK;
  const std::string shown = names.empty() ? "without a name" : "of " + names.front();
  return {grpc::StatusCode::PERMISSION_DENIED,
          "the certificate " + shown + " is none of those that --allowed-peers names"};
}

grpc::Status CallGuard::CheckToken(const grpc::ServerContextBase& context) {
  if (security_.token_file.empty()) return grpc::Status::OK;
  if (const absl::Status status = Refresh(); !status.ok()) {
    Log(LogLevel::kWarning, "the tokens stay as they were: " + std::string(status.message()));
  }
  const auto found = context.client_metadata().find("authorization");
  if (found == context.client_metadata().end()) {
    return Unauthenticated("this master wants a token: give --token-file");
  }
  const std::string_view given(found->second.data(), found->second.size());
  if (given.substr(0, kBearer.size()) != kBearer) {
    return Unauthenticated("what was sent is no bearer token");
  }
  MutexLock lock(&mutex_);
  bool is_known = false;
  for (const std::string& token : tokens_) {
    is_known |= SameSecret(token, given.substr(kBearer.size()));
  }
  return is_known ? grpc::Status::OK : Unauthenticated("the token is not known here");
}

}  // namespace muster
