// The command line of muster. Two programs are made from it: `muster`, which starts in about a
// millisecond and runs jobs of one node, and `muster-cluster` with gRPC (launcher/cluster_door.h).

#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/env.h"
#include "base/log.h"
#include "base/nearest_word.h"
#include "base/print_out.h"
#include "base/version.h"
#include "launcher/check_command.h"
#include "launcher/cluster_door.h"
#include "launcher/exit_codes.h"
#include "launcher/help_text.h"
#include "launcher/local_status.h"
#include "launcher/option_table.h"
#include "launcher/option_values.h"
#include "launcher/options.h"
#include "launcher/run_command.h"

namespace muster {
namespace {

int Usage(const std::string& problem) {
  Log(LogLevel::kError, problem);
  return kExitUsage;
}

int UnknownCommand(const std::string& word) {
  std::vector<std::string> known = {"run", "version", "help"};
  for (const CommandSpec& spec : CommandSpecs()) known.emplace_back(spec.name);
  std::string nearest = NearestWord(word, known);
  return Usage(absl::StrCat(
      "unknown command ", Quoted(word), ": ",
      nearest.empty() ? "'muster run PROGRAM' runs a program" : "did you mean '" + nearest + "'?"));
}

int HelpCommand(const std::vector<std::string>& words) {
  if (words.empty()) return PrintOut(HelpText());
  if (words.front() == "run") return PrintOut(RunHelpText());
  for (const CommandSpec& spec : CommandSpecs()) {
    if (words.front() == spec.name) return PrintOut(CommandHelpText(spec));
  }
  if (words.front() == "version" || words.front() == "help") return PrintOut(HelpText());
  return UnknownCommand(words.front());
}

// status, stop.
int Control(const CommandSpec& spec, const std::vector<std::string>& words, const EnvMap& env,
            char** argv) {
  const absl::StatusOr<Options> options = ParseOptions(words, env, spec);
  if (!options.ok()) return FailWith(options.status());
  if (options->help) return PrintOut(CommandHelpText(spec));
  const bool is_optional = *spec.arguments == '[';
  if (options->program.empty() && !is_optional) {
    return Usage(absl::StrCat("muster ", spec.name, " needs a job: its name (--rdzv-id)"));
  }
  if (!options->arguments.empty()) {
    return Usage(absl::StrCat("unexpected ", Quoted(options->arguments.front()), ": muster ",
                              spec.name, " takes one job"));
  }
  if (std::string_view(spec.name) == "status" && options->on("local")) {
    return LocalStatus(*options, env);
  }
  ClusterDoor* cluster = FindClusterDoor();
  return cluster == nullptr ? BecomeCluster(argv) : cluster->Control(spec, *options);
}

int LastWillCommand(const std::vector<std::string>& words, char** argv) {
  ClusterDoor* cluster = FindClusterDoor();
  return cluster == nullptr ? BecomeCluster(argv) : cluster->SendLastWill(words);
}

int Main(int argc, char** argv) {
  std::vector<std::string> words(argv, argv + argc);
  const std::string name = words.empty() ? "" : words[0].substr(words[0].rfind('/') + 1);
  if (!words.empty()) words.erase(words.begin());
  const EnvMap env = EnvMapFrom(environ);
  if (name == "torchrun") return RunCommand(words, env, argv);
  if (words.empty()) {
    std::fputs(HelpText().c_str(), stderr);
    return kExitUsage;
  }

  const std::string command = words.front();
  words.erase(words.begin());
  if (command == "run") return RunCommand(words, env, argv);
  if (command == "help" || command == "--help" || command == "-h") return HelpCommand(words);
  if (command == "version" || command == "--version") {
    return PrintOut(absl::StrCat("muster ", kVersion, "\n"));
  }
  if (command == CheckSpec().name) return CheckCommand(words, env, argv);
  if (command == "last-will") return LastWillCommand(words, argv);
  for (const CommandSpec& spec : CommandSpecs()) {
    if (command == spec.name) return Control(spec, words, env, argv);
  }
  return UnknownCommand(command);
}

// With less of a stack muster, or a thread of gRPC's, would end by a segmentation fault somewhere.
constexpr rlim_t kStackMin = 256 * 1024;

bool HasStack() {
  rlimit stack{};
  if (getrlimit(RLIMIT_STACK, &stack) != 0 || stack.rlim_cur >= kStackMin) return true;
  // Not by Log, which wants some stack itself.
  constexpr std::string_view kProblem =
      "muster: the limit of the stack (ulimit -s) is below 256 KiB: raise it\n";
  static_cast<void>(!write(STDERR_FILENO, kProblem.data(), kProblem.size()));
  return false;
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  if (!muster::HasStack()) return muster::kExitOsError;
  try {
    return muster::Main(argc, argv);
  } catch (const std::system_error& error) {
    // The C++ library's word for a thread that the kernel does not give.
    muster::Log(muster::LogLevel::kError,
                absl::StrCat("out of processes or memory: ", error.what(),
                             ": raise the limit of processes (ulimit -u)"));
    return muster::kExitOsError;
  }
}
