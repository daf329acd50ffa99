#include "rendezvous/message_codec.h"

#include "tests/fuzz/target.h"

namespace {

// What is decoded has an encoding that is decoded to the same again.
template <typename Wire>
void Try(const uint8_t* data, size_t size) {
  Wire wire;
  if (!wire.ParseFromArray(data, static_cast<int>(size))) return;
  auto message = muster::Decode(wire);
  if (!message.ok()) {
    muster::MustBeOneLine(message.status());
    return;
  }
  const Wire once = muster::Encode(*message);
  auto again = muster::Decode(once);
  muster::Must(again.ok(), "what is encoded is decoded");
  muster::Must(muster::Encode(*again).SerializeAsString() == once.SerializeAsString(),
               "a message has one form");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Try<muster::v1::AgentMessage>(data, size);
  Try<muster::v1::MasterMessage>(data, size);
  return 0;
}
