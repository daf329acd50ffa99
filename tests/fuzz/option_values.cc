#include "launcher/option_values.h"

#include "tests/fuzz/target.h"

namespace {

template <typename Parse>
void Try(const Parse& parse, absl::string_view text) {
  auto parsed = parse(text);
  if (!parsed.ok()) muster::MustBeOneLine(parsed.status());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster;
  const std::string_view bytes = TextOf(data, size);
  const absl::string_view text(bytes.data(), bytes.size());
  Try(ParseSwitch, text);
  Try([](auto word) { return ParseWhole(word, 0, 65535); }, text);
  Try(ParseSpan, text);
  Try(ParsePositiveSpan, text);
  Try(ParseNodes, text);
  Try(ParseSlots, text);
  Try(ParseStreams, text);
  Try(ParseRanks, text);
  Try(ParseFilters, text);
  Try(ParseSignals, text);
  Try(ParseStdin, text);
  Try(ParseNumaBinding, text);
  Try(ParseFencing, text);
  Try(ParseJoinPolicy, text);
  Try(ParseLogLevel, text);
  Try(ParseBackend, text);
  Try(ParseHost, text);
  if (auto span = ParseSpan(text); span.ok()) {
    Must(*span >= Duration::zero(), "a span is not negative");
  }
  if (auto nodes = ParseNodes(text); nodes.ok()) {
    Must(1 <= nodes->min && nodes->min <= nodes->max, "1 <= MIN <= MAX");
  }
  return 0;
}
