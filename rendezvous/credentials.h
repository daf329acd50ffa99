#ifndef MUSTER_RENDEZVOUS_CREDENTIALS_H_
#define MUSTER_RENDEZVOUS_CREDENTIALS_H_

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <grpcpp/grpcpp.h>
#include <sys/stat.h>

#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "rendezvous/security.h"

// rendezvous/security.h in the terms of gRPC.

namespace muster {

// For a server; cleartext without a certificate. Certificate, key and CA are watched: a second
// after the files have changed new connections are made with the new ones. FailedPrecondition: see
// CheckTlsFiles (rendezvous/credential_files.h).
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(const TlsFiles& tls);

// For one channel, with the files as they are now; cleartext without a CA. The same errors.
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeChannelCredentials(
    const TlsFiles& tls);

// Decides whether a call may be made. Every handler of every service asks it first. Thread-safe.
class CallGuard {
 public:
  // FailedPrecondition: the token file, see ReadTokens.
  static absl::StatusOr<std::unique_ptr<CallGuard>> Make(const ServerSecurity& security);

  // Unauthenticated: no token, or none that the file holds now. PermissionDenied: the certificate
  // has none of the allowed names. One sentence each, without the token.
  grpc::Status Check(const grpc::ServerContextBase& context);

  // Reads the token file again if it has changed. A file that cannot be used leaves the tokens as
  // they were, and is the error.
  absl::Status Refresh();

 private:
  explicit CallGuard(const ServerSecurity& security) : security_(security) {}

  grpc::Status CheckPeer(const grpc::ServerContextBase& context) const;
  grpc::Status CheckToken(const grpc::ServerContextBase& context);

  const ServerSecurity security_;
  Mutex mutex_;
  std::vector<std::string> tokens_ ABSL_GUARDED_BY(mutex_);
  struct stat read_ ABSL_GUARDED_BY(mutex_) {};  // the file when it was read last
};

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_CREDENTIALS_H_
