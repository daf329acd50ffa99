// The words of a command line and of its environment, one a line: NAME=value for variables, then an
// empty line, then words.

#include <vector>

#include "launcher/options.h"
#include "launcher/plan.h"
#include "tests/fuzz/target.h"
#include "tests/launcher/fake_machine.h"

namespace {

std::vector<std::string> Split(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines.emplace_back(text.substr(0, end));
    text = end == text.npos ? "" : text.substr(end + 1);
  }
  return lines;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster;
  const std::string_view text = TextOf(data, size);
  const size_t blank = text.find("\n\n");
  EnvMap env = {{"PATH", "/usr/bin"}};
  if (blank != text.npos) {
    for (const std::string& line : Split(text.substr(0, blank))) {
      const size_t equals = line.find('=');
      if (equals != line.npos) env[line.substr(0, equals)] = line.substr(equals + 1);
    }
  }
  std::vector<std::string> words = Split(blank == text.npos ? text : text.substr(blank + 2));
  absl::StatusOr<Options> options = ParseOptions(words, env);
  if (!options.ok()) {
    MustBeOneLine(options.status());
    return 0;
  }
  // More workers than this are an honest wish that takes its time.
  constexpr size_t kDigitsMax = 3;
  if (!options->help && options->text("nproc-per-node").size() > kDigitsMax) return 0;
  if (options->help) return 0;
  FakeMachine machine;
  absl::StatusOr<Plan> plan = MakePlan(*options, env, machine);
  if (!plan.ok()) {
    MustBeOneLine(plan.status());
    return 0;
  }
  Must(plan->agent.slots >= 1, "a node has a worker");
  Must(!plan->agent.argv.empty(), "there is a command");
  Must(DescribeError(plan->agent.settings).empty(), "settings make sense");
  Must(!DryRunText(*plan).empty(), "a plan can be shown");
  return 0;
}
