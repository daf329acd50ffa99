#include "agent/worker_message.h"

#include "tests/fuzz/target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster;
  size_t bytes = 0;
  const int malformed =
      ParseWorkerMessage(TextOf(data, size), [&](std::string_view key, std::string_view value) {
        Must(!key.empty() && key.size() <= 64, "a key has 1 to 64 characters");
        Must(value.find('\n') == value.npos, "a value is one line");
        bytes += key.size() + value.size();
      });
  Must(malformed >= 0 && bytes <= size, "lines come from the datagram");
  return 0;
}
