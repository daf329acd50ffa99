#include "base/endpoint_list.h"

#include <algorithm>
#include <utility>

namespace muster {

absl::StatusOr<std::vector<HostPort>> ParseEndpoints(std::string_view text, int default_port) {
  std::vector<HostPort> endpoints;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view one = text.substr(begin, end - begin);
    if (one.empty() && !text.empty()) {
      return absl::InvalidArgumentError("an endpoint beside a comma is empty: give HOST:PORT,...");
    }
    absl::StatusOr<HostPort> endpoint = ParseHostPort(one, default_port);
    if (!endpoint.ok()) return endpoint.status();
    if (std::find(endpoints.begin(), endpoints.end(), *endpoint) != endpoints.end()) {
      return absl::InvalidArgumentError("endpoint " + ToString(*endpoint) + " is given twice");
    }
    endpoints.push_back(*std::move(endpoint));
    begin = end + 1;
  }
  return endpoints;
}

std::string ToString(const std::vector<HostPort>& endpoints) {
  std::string text;
  for (const HostPort& endpoint : endpoints) {
    if (!text.empty()) text += ',';
    text += ToString(endpoint);
  }
  return text;
}

}  // namespace muster
