#ifndef MUSTER_LAUNCHER_OPTION_TABLE_H_
#define MUSTER_LAUNCHER_OPTION_TABLE_H_

#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

// The options of muster's commands. The parser, --help, docs/COMMANDS.md, the PET_ variables and
// the tests come from these lists. Pure.

namespace muster {

enum class OptionKind {
  kValue,
  kSwitch,
  kRefused,  // one of torchrun's that makes no sense here; `help` says why and what to do
};

enum class OptionGroup { kWorkers, kNodes, kFailures, kOutput, kSecurity, kOther };

struct OptionSpec {
  const char* name;  // without dashes: "nproc-per-node" is --nproc-per-node and --nproc_per_node
  char letter = 0;   // 'r' for -r; 0: none
  OptionKind kind = OptionKind::kValue;
  OptionGroup group = OptionGroup::kOther;
  const char* metavar = "";
  const char* default_text = "";  // the value when nothing else is given
  const char* default_note = "";  // what --help says instead of it, where the default is computed
  const char* variable = "";      // one more environment variable; after PET_, before the default
  bool in_torchrun = true;
  bool has_pet = true;        // there is a PET_ variable
  bool may_be_empty = false;  // an empty value on the command line says something
  const char* help = "";
  // OK, or "what is wrong: what to give" with the text in it. Null: any text will do.
  absl::Status (*check)(absl::string_view text) = nullptr;
};

// A command that takes options.
struct CommandSpec {
  const char* name;                     // "run"
  const char* arguments;                // "PROGRAM [ARGUMENTS...]"; empty: it takes none
  const char* help;                     // what it does
  std::span<const OptionSpec> options;  // in the order of --help
  bool ends_at_program = false;         // nothing behind the first argument is an option
  const char* exit_status = "";         // for the man page
};

const CommandSpec& RunSpec();
inline std::span<const OptionSpec> RunOptions() { return RunSpec().options; }

// The other commands that take options: status, stop and drain, which speak to a master, and check.
std::span<const CommandSpec> CommandSpecs();

// muster check: those options of run that say who meets where, and some of its own.
const CommandSpec& CheckSpec();

// The row with exactly this name (dashes, not underscores); null when there is none.
const OptionSpec* FindSpec(absl::string_view name, const CommandSpec& command = RunSpec());

// "PET_NPROC_PER_NODE" for nproc-per-node; empty for an option that has none.
std::string PetVariable(const OptionSpec& spec);

// "Workers", "Nodes and rendezvous", ...
const char* GroupTitle(OptionGroup group);

}  // namespace muster

#endif  // MUSTER_LAUNCHER_OPTION_TABLE_H_
