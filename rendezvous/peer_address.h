#ifndef MUSTER_RENDEZVOUS_PEER_ADDRESS_H_
#define MUSTER_RENDEZVOUS_PEER_ADDRESS_H_

#include <string>
#include <string_view>

namespace muster {

// The IP address in gRPC's name of a peer, without port and brackets, v4-mapped addresses unmapped:
// "10.0.0.7" for "ipv4:10.0.0.7:41234", "fe80::1%eth0" for "ipv6:%5Bfe80::1%25eth0%5D:41234". Empty
// for everything that is not IP (a Unix socket) or not understood.
std::string PeerAddress(std::string_view peer);

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_PEER_ADDRESS_H_
