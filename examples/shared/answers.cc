#include "examples/shared/answers.h"

#include <cstdio>

namespace examples {
namespace {

std::string Line(const char* title, const std::string& text, bool ok, bool colour) {
  const char* word = ok ? "ok" : "NOT OK";
  char line[512];
  std::snprintf(line, sizeof line, "%-17s %-76s %s%s%s\n", title, text.c_str(),
                colour ? (ok ? "\033[32m" : "\033[31m") : "", word, colour ? "\033[0m" : "");
  return line;
}

std::string Number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2g", value);
  return text;
}

std::string LostText(int64_t lost) {
  return lost == 0 ? "" : "; " + std::to_string(lost) + " values are not finite";
}

}  // namespace

Verdict Judge(const Answers& answers, bool colour) {
  constexpr size_t kRanksShown = 4;
  const size_t ranks = answers.shares.size();
  std::vector<int> seen(answers.samples, 0);
  std::string shares;
  for (size_t rank = 0; rank < ranks; ++rank) {
    for (const size_t index : answers.shares[rank]) ++seen[index];
    if (rank < kRanksShown) {
      shares += "rank " + std::to_string(rank) + ": " +
                std::to_string(answers.shares[rank].size()) + " samples, ";
    }
  }
  if (ranks > kRanksShown) shares += "…, ";
  size_t overlap = 0, missed = 0;
  for (const int times : seen) {
    overlap += times > 1;
    missed += times == 0;
  }
  shares += "overlap " + std::to_string(overlap);
  if (missed > 0) shares += ", missed " + std::to_string(missed);

  const bool split_ok = overlap == 0 && missed == answers.left_out;
  const bool parameters_ok = answers.parameter_difference == 0 && answers.lost_parameters == 0;
  const bool gradients_ok =
      answers.gradient_difference <= answers.rounding && answers.lost_gradients == 0;
  Verdict verdict;
  verdict.ok = split_ok && parameters_ok && gradients_ok;
  verdict.text = Line("data split", shares, split_ok, colour) +
                 Line("parameters",
                      "max difference over " + std::to_string(ranks) + " ranks: " +
                          Number(answers.parameter_difference) + LostText(answers.lost_parameters),
                      parameters_ok, colour) +
                 Line("gradients",
                      "max difference from one process on the joined batch: " +
                          Number(answers.gradient_difference) +
                          (answers.compared.empty() ? "" : " (" + answers.compared + ")") +
                          LostText(answers.lost_gradients),
                      gradients_ok, colour);
  return verdict;
}

}  // namespace examples
