#include "base/value_text.h"

#include <charconv>
#include <optional>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/duration_text.h"
#include "base/one_line.h"

namespace muster {
namespace {

template <typename... Parts>
absl::Status Bad(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

}  // namespace

bool ReadWhole(absl::string_view text, int* number) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

std::string Quoted(absl::string_view text) {
  constexpr size_t kShown = 60;
  if (text.size() <= kShown) return absl::StrCat("'", OneLine({text.data(), text.size()}), "'");
  return absl::StrCat("'", OneLine({text.data(), kShown}), "...'");
}

absl::StatusOr<bool> ParseSwitch(absl::string_view text) {
  std::string word = absl::AsciiStrToLower(text);
  if (word == "1" || word == "true" || word == "yes" || word == "on") return true;
  if (word == "0" || word == "false" || word == "no" || word == "off") return false;
  int number = 0;
  if (ReadWhole(word, &number)) return number != 0;
  return Bad(Quoted(text), " is not a switch: give 1, true, yes, on, or 0, false, no, off");
}

absl::StatusOr<int> ParseWhole(absl::string_view text, int min, int max) {
  int number = 0;
  if (ReadWhole(text, &number) && number >= min && number <= max) return number;
  return Bad(Quoted(text), " is not a whole number from ", min, " to ", max);
}

absl::StatusOr<int64_t> ParseBytes(absl::string_view text) {
  constexpr int kNumberMax = 1 << 30;
  absl::string_view digits = text;
  int shift = 0;
  if (!digits.empty()) {
    switch (digits.back()) {
      case 'k':
      case 'K':
        shift = 10;
        break;
      case 'm':
      case 'M':
        shift = 20;
        break;
      case 'g':
      case 'G':
        shift = 30;
        break;
      default:
        break;
    }
    if (shift > 0) digits.remove_suffix(1);
  }
  int number = 0;
  if (ReadWhole(digits, &number) && number >= 0 && number <= kNumberMax) {
    return int64_t{number} << shift;
  }
  return Bad(Quoted(text), " is not a number of bytes: give one as in 1000000, 500K, 10M, 1G");
}

absl::StatusOr<Duration> ParseSpan(absl::string_view text) {
  std::optional<Duration> span = ParseDuration({text.data(), text.size()});
  if (span.has_value()) return *span;
  return Bad(Quoted(text),
             " is not a span of time: give seconds or a unit, as in 30, 0.5, 500ms, 5m, 1h");
}

absl::StatusOr<Duration> ParsePositiveSpan(absl::string_view text) {
  absl::StatusOr<Duration> span = ParseSpan(text);
  if (span.ok() && *span == Duration::zero()) return Bad(Quoted(text), " must be positive");
  return span;
}

absl::StatusOr<std::vector<std::string>> ParseNames(absl::string_view text) {
  std::vector<std::string> names;
  for (absl::string_view name : absl::StrSplit(text, ',')) {
    name = absl::StripAsciiWhitespace(name);
    if (name.empty()) return Bad(Quoted(text), " has an empty name: give a,b,c");
    names.emplace_back(name);
  }
  return names;
}

absl::StatusOr<LogLevel> ParseLogLevel(absl::string_view text) {
  std::string name = absl::AsciiStrToLower(text);
  int number = 0;
  if (ReadWhole(name, &number) && number >= 0) {
    if (number <= 10) return LogLevel::kDebug;
    if (number <= 20) return LogLevel::kInfo;
    return number <= 30 ? LogLevel::kWarning : LogLevel::kError;
  }
  if (name == "debug") return LogLevel::kDebug;
  if (name == "info") return LogLevel::kInfo;
  if (name == "warning" || name == "warn") return LogLevel::kWarning;
  if (name == "error" || name == "critical" || name == "fatal") return LogLevel::kError;
  return Bad(Quoted(text), " is not a level: give debug, info, warning or error");
}

}  // namespace muster
