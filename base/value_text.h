#ifndef MUSTER_BASE_VALUE_TEXT_H_
#define MUSTER_BASE_VALUE_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/log.h"
#include "base/time.h"

// The plain kinds of values that options, variables and files have as texts. Pure. Every function
// returns InvalidArgument for a text that it does not take, with "what is wrong: what to give" as
// the message and the text in it; the caller puts the option's name in front.

namespace muster {

// `text` in quotes, for messages: control bytes are blanks, and what is over 60 bytes is cut.
std::string Quoted(absl::string_view text);

// Reads a whole number: no sign but '-', no blanks, nothing behind the digits.
bool ReadWhole(absl::string_view text, int* number);

// true, yes, on, false, no, off, in any case, or a number (0: off).
absl::StatusOr<bool> ParseSwitch(absl::string_view text);

// A whole number from `min` to `max`.
absl::StatusOr<int> ParseWhole(absl::string_view text, int min, int max);

// A number of bytes, with K, M or G behind it for powers of 1024.
absl::StatusOr<int64_t> ParseBytes(absl::string_view text);

// A span of time: seconds, or a number with a unit (base/duration_text.h).
absl::StatusOr<Duration> ParseSpan(absl::string_view text);
absl::StatusOr<Duration> ParsePositiveSpan(absl::string_view text);

// Names with commas between them; blanks around them do not count, empty ones are refused.
absl::StatusOr<std::vector<std::string>> ParseNames(absl::string_view text);

// debug, info, warning, error; also Python's names and numbers, in any case.
absl::StatusOr<LogLevel> ParseLogLevel(absl::string_view text);

}  // namespace muster

#endif  // MUSTER_BASE_VALUE_TEXT_H_
