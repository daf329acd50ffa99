#ifndef MUSTER_BASE_LOCAL_ADDRESSES_H_
#define MUSTER_BASE_LOCAL_ADDRESSES_H_

#include <string>
#include <vector>

namespace muster {

// The IP addresses of this host's interfaces that are up: the others in the kernel's order,
// loopback last. Link-local addresses are left out (they mean nothing without an interface). Empty
// when the kernel does not tell.
std::vector<std::string> LocalAddresses();

// The same with `first`, unless it is empty, in front.
std::vector<std::string> LocalAddressesFrom(const std::string& first);

// True when `address` (a literal) belongs to this host: an interface has it, or it is a loopback
// address.
bool IsLocalAddress(const std::string& address);

// The address that packets from this host to `address` (a literal) carry; empty when there is no
// route. Sends nothing.
std::string RouteAddress(const std::string& address);

}  // namespace muster

#endif  // MUSTER_BASE_LOCAL_ADDRESSES_H_
