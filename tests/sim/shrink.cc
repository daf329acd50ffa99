#include "tests/sim/shrink.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <vector>

namespace muster::sim {
namespace {

constexpr size_t kTraceLines = 40;
// Of simulations; a story takes a few milliseconds.
constexpr int kTriesMax = 500;

// The promise, whichever node and number it was about.
std::string KindOf(std::string violation) {
  std::erase_if(violation, [](unsigned char c) { return std::isdigit(c) != 0; });
  return violation;
}

}  // namespace

std::set<int> Shrink(uint64_t seed, const Result& broken) {
  const std::string kind = KindOf(broken.violation);
  std::vector<int> needed(broken.struck.begin(), broken.struck.end());
  int tries = 0;
  for (size_t part = needed.size(); part >= 1; part /= 2) {
    for (size_t from = 0; from < needed.size() && tries < kTriesMax; ++tries) {
      std::vector<int> fewer = needed;
      const auto begin = fewer.begin() + static_cast<std::ptrdiff_t>(from);
      const size_t most = std::min(part, needed.size() - from);
      fewer.erase(begin, begin + static_cast<std::ptrdiff_t>(most));
      const std::set<int> only(fewer.begin(), fewer.end());
      if (KindOf(Simulate(seed, false, &only).violation) == kind) {
        needed = fewer;
      } else {
        from += part;
      }
    }
  }
  return {needed.begin(), needed.end()};
}

std::string Text(const std::set<int>& numbers) {
  std::string text;
  for (const int number : numbers) text += (text.empty() ? "" : ",") + std::to_string(number);
  return text.empty() ? "0" : text;
}

std::string Report(uint64_t seed, const Result& result) {
  if (result.violation.empty()) return "";
  const std::set<int> needed = Shrink(seed, result);
  const Result again = Simulate(seed, true, &needed);
  std::string text = again.scenario + "\n";
  const size_t from = again.trace.size() > kTraceLines ? again.trace.size() - kTraceLines : 0;
  for (size_t i = from; i < again.trace.size(); ++i) text += "  " + again.trace[i] + "\n";
  text += "BROKEN: " + result.violation + "\n";
  if (again.violation != result.violation) text += "with fewer faults: " + again.violation + "\n";
  return text + "It takes " + std::to_string(needed.size()) + " of " +
         std::to_string(result.struck.size()) +
         " faults.\nReplay: bazel run //tests/sim:simulate -- --trace --seed=" +
         std::to_string(seed) + " --only=" + Text(needed) + "\n";
}

}  // namespace muster::sim
