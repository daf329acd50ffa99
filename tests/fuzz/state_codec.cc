#include "rendezvous/state_codec.h"

#include <algorithm>
#include <chrono>
#include <string>

#include "rendezvous/round_machine.h"
#include "rendezvous/state_file.h"
#include "tests/fuzz/target.h"

// A file is refused or has one form. A record that is decoded has one form, too, and a machine can
// go on with it.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes = muster::TextOf(data, size);
  if (const auto value = muster::ParseStateFile({bytes.data(), bytes.size()}); value.ok()) {
    muster::Must(muster::StateFileText(*value) == bytes, "a file has one form");
  } else {
    muster::MustBeOneLine(value.status());
  }
  const auto record = muster::DecodeJob(bytes);
  if (!record.ok()) {
    muster::MustBeOneLine(record.status());
    return 0;
  }
  const std::string once = muster::EncodeJob(*record);
  const auto again = muster::DecodeJob(once);
  muster::Must(again.ok() && *again == *record, "what is encoded is decoded to the same");
  const muster::Time end(std::chrono::hours(2));
  muster::RoundMachine machine(*record, 1, muster::Time(std::chrono::hours(1)));
  machine.Step(std::min(machine.NextDeadline(), end), muster::DeadlinePassed{});
  machine.Step(end, muster::StopRequested{"fuzz"});
  return 0;
}
