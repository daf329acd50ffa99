#include "agent/error_file.h"

#include "base/json_leaves.h"
#include "tests/fuzz/target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster;
  const std::string_view text = TextOf(data, size);
  Must(ReadJsonLeaves(text).values.size() <= 1000, "a text has at most 1,000 scalars");
  const WorkerError error = ParseErrorFile(text);
  Must(error.message.size() <= 4 * size, "a message comes from the text");
  return 0;
}
