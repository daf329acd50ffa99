// muster beside Python's DistributedDataParallel: cases.txt, and what train_in_python.py wrote.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>

#include "tests/differential/trainings.h"
#include "tests/worker_sdk/ranks.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

constexpr int kRanks = 4;
// How far apart results may be that were added up in different orders, by other processors or over
// shared memory. Where fewer bits are sent, four units of the last one of those.
constexpr double kOtherOrderUlps = 4096;
// In bfloat16 one bit less at the start is another network after five steps.
constexpr double kAnyNumber = std::numeric_limits<double>::infinity();

// A way from rank to rank. Gloo's is Python's as well.
struct Way {
  const char* name;
  bool shares_memory;
  int fewest_ranks;
};
constexpr Way kWays[] = {{"gloo", false, 1}, {"shared memory", true, 2}};

bool AddsUpAsPython(const Way& way, int ranks) { return !way.shares_memory || ranks <= 2; }

std::string ReadFile(const fs::path& file) {
  std::ifstream stream(file);
  EXPECT_TRUE(stream) << file << ": run from the root of the tree";
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

// What was trained here, by ways.
struct Ours {
  std::vector<Results> results;
  std::string processor;
};

// In processes of their own, since LibTorch's threads do not survive a fork.
Ours TrainHere(const std::vector<Case>& cases) {
  const fs::path folder = fs::path(testing::TempDir()) / "differential";
  fs::create_directories(folder);
  Ours ours;
  for (const Way& way : kWays) {
    std::string all;
    for (int ranks = way.fewest_ranks; ranks <= kRanks; ++ranks) {
      const auto train = [&](int rank) {
        const std::string lines = TrainAll(cases);
        if (rank == 0) {
          std::ofstream(folder / "lines") << lines;
          std::ofstream(folder / "processor") << Processor();
        }
        return 0;
      };
      EXPECT_TRUE(OnRanks(ranks, train, {{"MUSTER_SHARED_MEMORY", way.shares_memory ? "1" : "0"}}));
      all += ReadFile(folder / "lines");
    }
    ours.results.push_back(ParseResults(all));
  }
  ours.processor = ReadFile(folder / "processor");
  return ours;
}

// Python's, where there are some of this kind of processor, of that one.
fs::path PythonsFile(const std::string& processor) {
  // Of this machine, a moment ago.
  if (const char* fresh = std::getenv("MUSTER_PYTHON_RESULTS")) return fresh;
  std::set<fs::path> files;
  for (const auto& entry : fs::directory_iterator("tests/differential")) {
    if (entry.path().filename().string().rfind("golden_", 0) == 0) files.insert(entry.path());
  }
  const auto fits = [&](const fs::path& file) {
    return ReadFile(file).find("# processor " + processor + "\n") != std::string::npos;
  };
  const auto found = std::find_if(files.begin(), files.end(), fits);
  return found != files.end() ? *found : *files.begin();
}

double Allowed(const Case& one, bool same_order) {
  if (same_order) return static_cast<double>(one.Ulps());
  if (one.On("autocast") || one.Get("dtype") == "bf16") return kAnyNumber;
  if (one.Get("hook") == "fp16") return kOtherOrderUlps * 8;
  return one.Get("hook") == "bf16" ? kOtherOrderUlps * 64 : kOtherOrderUlps;
}

struct Totals {
  int combinations = 0, equal = 0;
  size_t tensors = 0, numbers = 0;
};

// "=" or how far apart.
std::string Verdict(double ulps) {
  if (ulps == 0) return "=";
  char text[32];
  std::snprintf(text, sizeof text, ulps < 0 ? "differs" : "%.1f ulps", ulps);
  return text;
}

// Compares all tensors of one case at one number of ranks; returns the worst.
double Compare(const std::string& prefix, const Results& ours, const Results& theirs,
               Totals& totals) {
  double worst = 0;
  size_t tensors = 0;
  for (auto at = theirs.lower_bound(prefix); at != theirs.end() && at->first.starts_with(prefix);
       ++at) {
    const auto own = ours.find(at->first);
    const double ulps = own == ours.end() ? -1 : UlpsApart(own->second, at->second);
    if (at->first.ends_with("initial")) {
      EXPECT_EQ(ulps, 0) << at->first;
    }
    if (ulps < 0) return ulps;
    worst = std::max(worst, ulps);
    ++tensors;
    totals.numbers += at->second.size();
  }
  totals.tensors += tensors;
  return tensors == 0 ? -1 : worst;
}

TEST(Differential, TrainsAsPythonsDistributedDataParallelDoes) {
  const std::vector<Case> cases = ReadCases("tests/differential/cases.txt");
  const Ours ours = TrainHere(cases);
  const fs::path file = PythonsFile(ours.processor);
  const std::string golden = ReadFile(file);
  const Results theirs = ParseResults(golden);
  const bool same_processor =
      golden.find("# processor " + ours.processor + "\n") != std::string::npos;
  Totals totals;
  std::printf("%-28s", "case");
  for (const Way& way : kWays) {
    for (int ranks = way.fewest_ranks; ranks <= kRanks; ++ranks) std::printf(" %10d", ranks);
    std::printf(" (ranks, %s)", way.name);
  }
  std::printf("\n");
  for (const Case& one : cases) {
    std::printf("%-28s", one.name.c_str());
    for (size_t i = 0; i < std::size(kWays); ++i) {
      for (int ranks = kWays[i].fewest_ranks; ranks <= kRanks; ++ranks) {
        const std::string prefix = one.name + " " + std::to_string(ranks) + " ";
        const double ulps = Compare(prefix, ours.results[i], theirs, totals);
        std::printf(" %10s", Verdict(ulps).c_str());
        const double allowed = Allowed(one, same_processor && AddsUpAsPython(kWays[i], ranks));
        EXPECT_TRUE(ulps >= 0 && ulps <= allowed)
            << prefix << kWays[i].name << ": " << Verdict(ulps);
        ++totals.combinations;
        totals.equal += ulps == 0;
      }
    }
    std::printf("\n");
  }
  std::printf(
      "%d combinations (initial parameters, gradients, parameters, buffers): %d bit for bit, "
      "%d within their ulps; %zu tensors, %zu numbers; Python's of %s, on %s processor\n",
      totals.combinations, totals.equal, totals.combinations - totals.equal, totals.tensors,
      totals.numbers, file.filename().c_str(), same_processor ? "the same kind of" : "another");
  EXPECT_GE(totals.combinations, 60);
}

}  // namespace
}  // namespace muster
