#ifndef MUSTER_BASE_ENDPOINT_LIST_H_
#define MUSTER_BASE_ENDPOINT_LIST_H_

#include <absl/status/statusor.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/host_port.h"

namespace muster {

// Reads endpoints with commas between: "a:1,b,[::1]:2". Errors as of ParseHostPort; an empty one
// among several, and the same one twice, are InvalidArgument, too.
absl::StatusOr<std::vector<HostPort>> ParseEndpoints(std::string_view text, int default_port);

// "a:1,b:29400,[::1]:2".
std::string ToString(const std::vector<HostPort>& endpoints);

}  // namespace muster

#endif  // MUSTER_BASE_ENDPOINT_LIST_H_
