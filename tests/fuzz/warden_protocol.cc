#include "agent/warden_protocol.h"

#include "tests/fuzz/target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster;
  const std::string_view frame = TextOf(data, size);
  FrameLength(frame);
  if (auto request = DecodeRequest(frame)) {
    Must(Encode(*request) == frame, "a request has one form");
  }
  if (auto answer = DecodeAnswer(frame)) Must(Encode(*answer) == frame, "an answer has one form");
  return 0;
}
