#ifndef MUSTER_RENDEZVOUS_MASTER_ADDRESS_H_
#define MUSTER_RENDEZVOUS_MASTER_ADDRESS_H_

#include <string>

#include "rendezvous/messages.h"

namespace muster {

struct AddressChoice {
  std::string address;  // without brackets for IPv6
  std::string guess;    // why it may be wrong, one clause; empty when it is sure
};

// The address of a node as the other nodes of its job reach it: MASTER_ADDR when it holds group
// rank 0. In this order:
//   --local-addr;
//   for an agent on the master's own host (its stream comes from the loopback or from within the
//   process) the host of the endpoint, as nodes elsewhere dial it (`masters_host`, empty when there
//   are none), else as this one dials it; the address its stream comes from, if it is one of the
//   agent's own (or the agent named none); behind NAT or a proxy the agent's own address that
//   routes to the master, as a guess.
AddressChoice ReachableAddress(const Hello& hello, const std::string& peer_address,
                               const std::string& masters_host);

// 127.0.0.0/8, ::1, or empty (no network in between).
bool IsLoopback(const std::string& peer_address);

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_MASTER_ADDRESS_H_
