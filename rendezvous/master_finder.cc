#include "rendezvous/master_finder.h"

#include "rendezvous/credential_files.h"
#include "rendezvous/election_finder.h"
#include "rendezvous/endpoint_finder.h"

namespace muster {

absl::Status CheckFiles(const ClusterOptions& options) {
  const absl::Status status = CheckFiles(options.security.tls, options.security.token_file);
  if (!status.ok() || !options.election.has_value()) return status;
  return CheckFiles(options.election->etcd);
}

std::unique_ptr<MasterFinder> MakeMasterFinder(Clock* clock, const ClusterOptions& options) {
  if (options.election.has_value()) return std::make_unique<ElectionFinder>(clock, options);
  return std::make_unique<EndpointFinder>(clock, options);
}

}  // namespace muster
