#include "base/duration_text.h"

#include <charconv>
#include <chrono>
#include <system_error>

namespace muster {
namespace {

std::optional<double> SecondsOf(std::string_view unit) {
  if (unit == "ms") return 1e-3;
  if (unit.empty() || unit == "s") return 1;
  if (unit == "m") return 60;
  if (unit == "h") return 3600;
  if (unit == "d") return 86400;
  return std::nullopt;
}

}  // namespace

std::optional<Duration> ParseDuration(std::string_view text) {
  size_t number_size = text.find_first_not_of("0123456789.");
  std::string_view number = text.substr(0, number_size);
  std::string_view unit = text.substr(number.size());
  std::optional<double> seconds_each = SecondsOf(unit);
  if (number.empty() || !seconds_each.has_value()) return std::nullopt;

  double count = 0;
  auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), count);
  if (error != std::errc() || end != number.data() + number.size()) return std::nullopt;
  double seconds = count * *seconds_each;
  if (seconds > 10000.0 * 86400) return std::nullopt;
  return std::chrono::round<Duration>(std::chrono::duration<double>(seconds));
}

}  // namespace muster
