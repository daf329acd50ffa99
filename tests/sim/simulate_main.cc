// Runs simulations of a whole job from their seeds; see docs/TESTING.md.

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "tests/sim/shrink.h"

namespace muster::sim {
namespace {

struct Options {
  uint64_t seed = 1;
  uint64_t seeds = 1;
  bool traces = false;
  std::optional<std::set<int>> only;  // the faults that strike, by number
};

bool ParseNumber(const char* argument, const char* name, uint64_t* number) {
  const size_t length = strlen(name);
  if (strncmp(argument, name, length) != 0) return false;
  char* end = nullptr;
  *number = strtoull(argument + length, &end, 10);
  return end != argument + length && *end == '\0';
}

// "3,17,20"; 0 stands for none.
bool ParseOnly(const char* argument, std::optional<std::set<int>>* only) {
  constexpr char kName[] = "--only=";
  if (strncmp(argument, kName, strlen(kName)) != 0) return false;
  const char* at = argument + strlen(kName);
  only->emplace();
  for (;;) {
    char* end = nullptr;
    (*only)->insert(static_cast<int>(strtol(at, &end, 10)));
    if (end == at || (*end != ',' && *end != '\0')) return false;
    if (*end == '\0') return true;
    at = end + 1;
  }
}

bool Parse(int argc, char** argv, Options* options) {
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "--trace") == 0) {
      options->traces = true;
    } else if (!ParseNumber(argv[i], "--seed=", &options->seed) &&
               !ParseNumber(argv[i], "--seeds=", &options->seeds) &&
               !ParseOnly(argv[i], &options->only)) {
      fprintf(stderr,
              "simulate: cannot use '%s'; usage: simulate [--seed=N] [--seeds=K] [--only=FAULTS] "
              "[--trace]\n",
              argv[i]);
      return false;
    }
  }
  return true;
}

// What the seeds covered.
struct Summary {
  uint64_t failed = 0;
  uint64_t actions = 0;
  int64_t faults = 0;
  int64_t generations = 0;
  Duration duration{};
  std::map<int, int> exit_codes;
  std::pair<double, uint64_t> slowest;

  void Add(uint64_t seed, const Result& result) {
    slowest = std::max(slowest, {result.patience_used, seed});
    failed += result.violation.empty() ? 0 : 1;
    actions += result.actions;
    faults += result.faults;
    generations += result.generations;
    duration += result.duration;
    ++exit_codes[result.exit_code];
  }

  void Print(const Options& options) const {
    const auto hours = std::chrono::floor<std::chrono::hours>(duration).count();
    printf("%" PRIu64 " actions, %" PRId64 " faults, %" PRId64 " generations, %" PRId64
           " simulated hours; exit codes (jobs):",
           actions, faults, generations, static_cast<int64_t>(hours));
    for (const auto& [code, jobs] : exit_codes) printf(" %d (%d)", code, jobs);
    printf("\nslowest end: seed %" PRIu64 ", %.0f%% of the time it may take", slowest.second,
           slowest.first * 100);
    printf("\n%" PRIu64 " seeds from %" PRIu64 ", %" PRIu64 " failed\n", options.seeds,
           options.seed, failed);
  }
};

int Run(const Options& options) {
  Summary summary;
  for (uint64_t i = 0; i < options.seeds; ++i) {
    const uint64_t seed = options.seed + i;
    const Result result = Simulate(seed, options.traces, options.only ? &*options.only : nullptr);
    if (options.traces) {
      printf("%s\n", result.scenario.c_str());
      for (const std::string& line : result.trace) printf("%s\n", line.c_str());
    }
    summary.Add(seed, result);
    if (!result.violation.empty()) {
      printf("SEED %" PRIu64 "\n%s\n", seed, Report(seed, result).c_str());
      fflush(stdout);
    }
  }
  summary.Print(options);
  return summary.failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace muster::sim

int main(int argc, char** argv) {
  muster::sim::Options options;
  if (!muster::sim::Parse(argc, argv, &options)) return 2;
  return muster::sim::Run(options);
}
