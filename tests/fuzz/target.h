#ifndef MUSTER_TESTS_FUZZ_TARGET_H_
#define MUSTER_TESTS_FUZZ_TARGET_H_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

// What every source in this folder but replay.cc defines: one input, of any bytes. What must not
// happen ends the process.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace muster {

inline std::string_view TextOf(const uint8_t* data, size_t size) {
  return size == 0 ? std::string_view()
                   : std::string_view(reinterpret_cast<const char*>(data), size);
}

inline void Must(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "must hold: %s\n", what);
  std::abort();
}

// What a person reads is one line, and not longer than a screen.
template <typename Status>
void MustBeOneLine(const Status& status) {
  constexpr size_t kBytesMax = 600;
  const std::string_view message(status.message().data(), status.message().size());
  Must(message.find('\n') == message.npos, "a message is one line");
  Must(message.size() <= kBytesMax, "a message fits a screen");
}

}  // namespace muster

#endif  // MUSTER_TESTS_FUZZ_TARGET_H_
