#include "rendezvous/peer_address.h"

#include "base/host_port.h"

namespace muster {
namespace {

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string PercentDecoded(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool escape = text[i] == '%' && i + 2 < text.size() && HexDigit(text[i + 1]) >= 0 &&
                        HexDigit(text[i + 2]) >= 0;
    if (!escape) {
      decoded += text[i];
      continue;
    }
    decoded += static_cast<char>(HexDigit(text[i + 1]) * 16 + HexDigit(text[i + 2]));
    i += 2;
  }
  return decoded;
}

}  // namespace

std::string PeerAddress(std::string_view peer) {
  const size_t scheme_end = peer.find(':');
  if (scheme_end == std::string_view::npos) return "";
  const std::string_view scheme = peer.substr(0, scheme_end);
  if (scheme != "ipv4" && scheme != "ipv6") return "";
  std::string address = PercentDecoded(peer.substr(scheme_end + 1));
  const size_t port = address.rfind(':');
  if (port == std::string::npos) return "";
  address.resize(port);
  if (address.size() >= 2 && address.front() == '[' && address.back() == ']') {
    address = address.substr(1, address.size() - 2);
  }
  return IsAddressLiteral(address) ? UnmapAddress(address) : "";
}

}  // namespace muster
