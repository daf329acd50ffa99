#include "launcher/hostlist.h"

#include "tests/fuzz/target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster;
  const std::string_view text = TextOf(data, size);
  absl::StatusOr<std::vector<std::string>> hosts = ExpandHostlist({text.data(), text.size()});
  if (!hosts.ok()) {
    MustBeOneLine(hosts.status());
    return 0;
  }
  Must(!hosts->empty() && hosts->size() <= 65536, "there are hosts, and not too many");
  for (const std::string& host : *hosts) {
    Must(!host.empty() && host.find_first_of("[],") == host.npos, "a host is a plain name");
  }
  return 0;
}
