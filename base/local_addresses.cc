#include "base/local_addresses.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "base/host_port.h"
#include "base/unique_fd.h"

namespace muster {
namespace {

// Empty for what is neither IPv4 nor IPv6, and for link-local addresses.
std::string AddressText(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN];
  const void* bytes = nullptr;
  if (address->sa_family == AF_INET) {
    bytes = &reinterpret_cast<const sockaddr_in*>(address)->sin_addr;
  } else if (address->sa_family == AF_INET6) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address);
    if (IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr)) return "";
    bytes = &v6->sin6_addr;
  } else {
    return "";
  }
  return inet_ntop(address->sa_family, bytes, text, sizeof(text)) == nullptr ? "" : text;
}

}  // namespace

std::vector<std::string> LocalAddresses() {
  std::vector<std::string> addresses;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return addresses;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0) continue;
    std::string text = AddressText(entry->ifa_addr);
    if (!text.empty()) addresses.push_back(std::move(text));
  }
  freeifaddrs(list);
  std::stable_partition(addresses.begin(), addresses.end(),
                        [](const std::string& address) { return !IsLoopbackHost(address); });
  return addresses;
}

bool IsLocalAddress(const std::string& address) {
  if (IsLoopbackHost(address)) return true;
  const std::vector<std::string> own = LocalAddresses();
  return std::find(own.begin(), own.end(), UnmapAddress(address)) != own.end();
}

std::string RouteAddress(const std::string& address) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(address.c_str(), "9", &hints, &found) != 0) return "";
  const UniqueFd socket_fd(socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage own{};
  socklen_t length = sizeof(own);
  const bool known = socket_fd.valid() &&
                     connect(socket_fd.get(), found->ai_addr, found->ai_addrlen) == 0 &&
                     getsockname(socket_fd.get(), reinterpret_cast<sockaddr*>(&own), &length) == 0;
  freeaddrinfo(found);
  return known ? AddressText(reinterpret_cast<const sockaddr*>(&own)) : "";
}

std::vector<std::string> LocalAddressesFrom(const std::string& first) {
  std::vector<std::string> addresses = LocalAddresses();
  addresses.erase(std::remove(addresses.begin(), addresses.end(), first), addresses.end());
  if (!first.empty()) addresses.insert(addresses.begin(), first);
  return addresses;
}

}  // namespace muster
