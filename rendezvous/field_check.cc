#include "rendezvous/field_check.h"

#include <algorithm>

#include "rendezvous/message_codec.h"

namespace muster {

int64_t FieldCheck::Range(const char* field, int64_t value, int64_t least, int64_t most) {
  if (value < least || value > most) {
    Fail(std::string(field) + " is " + std::to_string(value) + ", not from " +
         std::to_string(least) + " to " + std::to_string(most));
  }
  return value;
}

Duration FieldCheck::Span(const char* field, int64_t nanoseconds) {
  constexpr Duration kMost = std::chrono::hours(24 * 366);
  if (nanoseconds < 0 || nanoseconds > kMost.count()) {
    Fail(std::string(field) + " is " + std::to_string(nanoseconds) +
         " nanoseconds, not from 0 to 366 days");
  }
  return Duration(nanoseconds);
}

const std::string& FieldCheck::Text(const char* field, const std::string& value, size_t bytes_max) {
  if (value.size() > bytes_max) {
    Fail(std::string(field) + " has " + std::to_string(value.size()) + " bytes, more than " +
         std::to_string(bytes_max));
  }
  return value;
}

const std::string& FieldCheck::Id(const char* field, const std::string& value) {
  if (value.empty()) Fail(std::string(field) + " is empty");
  const auto is_control = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
  if (std::any_of(value.begin(), value.end(), is_control)) {
    Fail(std::string(field) + " has control characters");
  }
  return Text(field, value, kIdBytesMax);
}

void FieldCheck::UnknownEnum(const char* field, int value) {
  Fail(std::string(field) + " is " + std::to_string(value) + ", which this version does not know");
}

void FieldCheck::Fail(const std::string& what) {
  if (status_.ok()) status_ = absl::InvalidArgumentError(message_ + ": " + what);
}

}  // namespace muster
