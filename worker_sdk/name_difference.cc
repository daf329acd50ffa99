#include "worker_sdk/name_difference.h"

#include <algorithm>

namespace muster {
namespace {

// Those of `names` that are not among `others`: "a, b, c and 4 more".
std::string Missing(const std::vector<std::string>& names, const std::vector<std::string>& others) {
  constexpr size_t kNamedMax = 6;
  std::vector<std::string> missing;
  for (const std::string& name : names) {
    if (std::find(others.begin(), others.end(), name) == others.end()) missing.push_back(name);
  }
  std::string text;
  for (size_t i = 0; i < std::min(missing.size(), kNamedMax); ++i) {
    text += (i == 0 ? "" : ", ") + missing[i];
  }
  if (missing.size() <= kNamedMax) return text;
  return text + " and " + std::to_string(missing.size() - kNamedMax) + " more";
}

}  // namespace

std::string NameDifference(const std::vector<std::string>& in_checkpoint,
                           const std::vector<std::string>& in_program) {
  const std::string only_there = Missing(in_checkpoint, in_program);
  const std::string only_here = Missing(in_program, in_checkpoint);
  std::string text;
  if (!only_there.empty()) text = "it has " + only_there + ", which this program does not have";
  if (!only_here.empty()) {
    text += (text.empty() ? "it lacks " : ", and lacks ") + only_here + ", which this program has";
  }
  if (!text.empty() || in_checkpoint == in_program) return text;
  const auto [saved, own] = std::mismatch(in_checkpoint.begin(), in_checkpoint.end(),
                                          in_program.begin(), in_program.end());
  return "it has " + (saved == in_checkpoint.end() ? "nothing" : *saved) +
         " where this program has " + (own == in_program.end() ? "nothing" : *own) +
         ": the same in another order";
}

}  // namespace muster
