#ifndef MUSTER_RENDEZVOUS_CLUSTER_H_
#define MUSTER_RENDEZVOUS_CLUSTER_H_

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/host_port.h"
#include "base/time.h"
#include "rendezvous/etcd_options.h"
#include "rendezvous/reason.h"
#include "rendezvous/rendezvous_client.h"
#include "rendezvous/security.h"

// The door of multi-node jobs. No type of gRPC is named here, so that a program can load what is
// behind it when needed.

namespace muster {

struct ClusterOptions {
  // Where the master listens, as every node of the job writes it. Port 0 only for a job of this
  // node: any free port. Several: those of standing masters, of which one leads; they are tried in
  // turn, and this node hosts none.
  std::vector<HostPort> endpoints;

  // Instead of endpoints: the agents of the job elect one of themselves through etcd.
  std::optional<EtcdElectionOptions> election;

  // This node's address for the others, where the user gave one (--local-addr).
  std::string own_host;

  // Whether this node hosts the master. Unset: it does when the endpoint resolves to an address of
  // this host and nothing listens there yet. True: also when the address is not of this host (NAT,
  // virtual address); it then listens on all addresses. False: never.
  std::optional<bool> is_host;

  // How to talk to the master, and how a master on this node lets others talk to it: with the same
  // files, over TLS when there is a certificate. A node that has a CA and no certificate does not
  // host. `require_auth`: nor does one without TLS, unless the endpoint is on loopback.
  ClientSecurity security;
  std::vector<std::string> allowed_peers;
  bool require_auth = false;

  // How long one address of the endpoint may take to answer a connection.
  Duration connect_timeout = std::chrono::seconds(5);

  // Feeds the jitter of the hosted master's back-off.
  uint64_t seed = 0;

  // Both may be empty, are called by threads of the rendezvous, must not block, and must stay valid
  // until the client is gone. `on_decision`: what a master on this node decides. `on_hosting`: it
  // listens now, on this address.
  std::function<void(const std::string& job_id, const Reason& reason)> on_decision;
  std::function<void(const std::string& address)> on_hosting;
};

// How a master on this node listens.
ServerSecurity HostedSecurity(const ClusterOptions& options);

// Hello::own_addresses and Hello::dialled_host are filled in by the client when the caller leaves
// them empty. Destroying the client breaks its stream and ends the master that it hosts (up to half
// a second, for what is still to be sent).
std::unique_ptr<RendezvousClient> MakeClusterRendezvous(const ClusterOptions& options);

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_CLUSTER_H_
