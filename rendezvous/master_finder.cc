#include "rendezvous/master_finder.h"

#include "rendezvous/election_finder.h"
#include "rendezvous/endpoint_finder.h"

namespace muster {

std::unique_ptr<MasterFinder> MakeMasterFinder(Clock* clock, const ClusterOptions& options) {
  if (options.election.has_value()) return std::make_unique<ElectionFinder>(clock, options);
  return std::make_unique<EndpointFinder>(clock, options);
}

}  // namespace muster
