#ifndef MUSTER_RENDEZVOUS_FIELD_CHECK_H_
#define MUSTER_RENDEZVOUS_FIELD_CHECK_H_

#include <absl/status/status.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/time.h"

namespace muster {

// Reads the fields of one message and remembers the first that cannot be meant. `message` names the
// message in errors. Every getter returns the value as it came; status() says whether all were
// usable.
class FieldCheck {
 public:
  explicit FieldCheck(std::string message) : message_(std::move(message)) {}

  const absl::Status& status() const { return status_; }

  int64_t Range(const char* field, int64_t value, int64_t least, int64_t most);
  int Int(const char* field, int64_t value, int64_t least, int64_t most) {
    return static_cast<int>(Range(field, value, least, most));
  }
  int Port(const char* field, int64_t value) { return Int(field, value, 0, 65535); }
  int64_t Generation(int64_t value) { return Range("generation", value, 0, INT64_MAX - 1); }

  // From 0 to 366 days: sums of several stay far from overflow.
  Duration Span(const char* field, int64_t nanoseconds);

  const std::string& Text(const char* field, const std::string& value, size_t bytes_max);
  // Not empty and without control characters.
  const std::string& Id(const char* field, const std::string& value);

  // An enum number that this version does not know.
  void UnknownEnum(const char* field, int value);
  void Fail(const std::string& what);

 private:
  std::string message_;
  absl::Status status_;
};

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_FIELD_CHECK_H_
