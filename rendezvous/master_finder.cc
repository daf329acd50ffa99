#include "rendezvous/master_finder.h"

#include "rendezvous/credential_files.h"
#include "rendezvous/election_finder.h"
#include "rendezvous/endpoint_finder.h"

namespace muster {

absl::Status CheckFiles(const ClusterOptions& options) {
  const ClientSecurity& security = options.security;
  absl::Status status = CheckTlsFiles(security.tls).status();
  if (status.ok() && !security.token_file.empty()) {
    status = ReadTokens(security.token_file).status();
  }
  if (!status.ok() || !options.election.has_value()) return status;
  const EtcdOptions& etcd = options.election->etcd;
  status = CheckTlsFiles({etcd.ca_file, etcd.cert_file, etcd.key_file}).status();
  if (status.ok() && !etcd.password_file.empty()) {
    status = ReadCredentialFile(etcd.password_file).status();
  }
  return status;
}

std::unique_ptr<MasterFinder> MakeMasterFinder(Clock* clock, const ClusterOptions& options) {
  if (options.election.has_value()) return std::make_unique<ElectionFinder>(clock, options);
  return std::make_unique<EndpointFinder>(clock, options);
}

}  // namespace muster
