#include "rendezvous/master_address.h"

#include <algorithm>
#include <string>

namespace muster {
namespace {

std::string WithoutBrackets(const std::string& host) {
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    return host.substr(1, host.size() - 2);
  }
  return host;
}

}  // namespace

AddressChoice ReachableAddress(const Hello& hello, const std::string& peer_address,
                               const std::string& masters_host) {
  if (!hello.local_addr.empty()) return {WithoutBrackets(hello.local_addr), ""};
  if (IsLoopback(peer_address)) {
    const std::string& host = masters_host.empty() ? hello.dialled_host : masters_host;
    if (!host.empty()) return {WithoutBrackets(host), ""};
    if (!hello.own_addresses.empty()) {
      return {hello.own_addresses.front(), "the endpoint names no host; this is its first address"};
    }
    return {"127.0.0.1", "it named no address"};
  }
  const auto& own = hello.own_addresses;
  if (own.empty() || std::find(own.begin(), own.end(), peer_address) != own.end()) {
    return {peer_address, ""};
  }
  return {own.front(), "its stream comes from " + peer_address +
                           ", which is none of its own addresses (NAT or a proxy); --local-addr "
                           "settles it"};
}

bool IsLoopback(const std::string& peer_address) {
  return peer_address.empty() || peer_address.rfind("127.", 0) == 0 || peer_address == "::1";
}

}  // namespace muster
