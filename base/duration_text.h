#ifndef MUSTER_BASE_DURATION_TEXT_H_
#define MUSTER_BASE_DURATION_TEXT_H_

#include <optional>
#include <string_view>

#include "base/time.h"

namespace muster {

// Reads what people write for a span of time: a number without a sign, whole or with a decimal
// point, and a unit: ms, s, m, h, d. No unit means seconds: "30", "0.5", "1500ms", "1h". At most
// 10000 days; nothing for any other text. (The way back is DurationText of rendezvous/settings.h.)
std::optional<Duration> ParseDuration(std::string_view text);

}  // namespace muster

#endif  // MUSTER_BASE_DURATION_TEXT_H_
