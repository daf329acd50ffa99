#include "base/host_port.h"
#include "launcher/option_values.h"
#include "tests/fuzz/target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster;
  const std::string_view text = TextOf(data, size);
  absl::StatusOr<HostPort> endpoint = ParseHostPort(text, 29400);
  if (!endpoint.ok()) {
    MustBeOneLine(endpoint.status());
  } else {
    Must(0 <= endpoint->port && endpoint->port <= 65535, "a port is one");
    Must(!endpoint->host.empty(), "there is a host");
    absl::StatusOr<HostPort> again = ParseHostPort(ToString(*endpoint), 1);
    Must(again.ok() && *again == *endpoint, "what is written is read again");
    IsLoopbackHost(endpoint->host);
    UnmapAddress(endpoint->host);
  }
  absl::StatusOr<std::string> host = ParseHost({text.data(), text.size()});
  if (!host.ok()) MustBeOneLine(host.status());
  return 0;
}
