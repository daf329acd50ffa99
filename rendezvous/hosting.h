#ifndef MUSTER_RENDEZVOUS_HOSTING_H_
#define MUSTER_RENDEZVOUS_HOSTING_H_

#include <absl/status/statusor.h>

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "rendezvous/cluster.h"
#include "rendezvous/master_server.h"

namespace muster {

// The addresses on which this node should try to listen, in order; empty: it is not the endpoint's
// host. `resolved` are the addresses of the endpoint.
//   - those of `resolved` that are this host's own;
//   - all addresses ("::", "0.0.0.0") for a name that means only a loopback address here, since the
//   other nodes see
//     another address behind it (Debian's 127.0.1.1), and for a host by decree whose endpoint is an
//     address of nobody here.
// The port is that of the first endpoint.
std::vector<std::string> HostingAddresses(const ClusterOptions& options,
                                          const std::vector<std::string>& resolved);

struct HostedMaster {
  std::unique_ptr<MasterServer> server;  // null: this node does not host; dial the endpoint
  std::string dial_address;              // where the server is reached from this host
};

// "::", and "0.0.0.0" for a host without IPv6.
const std::vector<std::string>& AllAddresses();

// A master of this node's on that address. `loop` says what there is to go on with.
MasterServer::Options HostedServer(const ClusterOptions& options, const HostPort& address,
                                   MasterLoop::Options loop = {});

// Tries to host the master. An error is one that dialling cannot mend (see MasterServer::Start).
absl::StatusOr<HostedMaster> TryHost(Clock* clock, const ClusterOptions& options,
                                     const std::vector<std::string>& resolved);

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_HOSTING_H_
