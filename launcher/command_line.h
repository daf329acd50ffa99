#ifndef MUSTER_LAUNCHER_COMMAND_LINE_H_
#define MUSTER_LAUNCHER_COMMAND_LINE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "launcher/option_table.h"

namespace muster {

// The words of a command. Those of `muster run` are cut where the program begins.
struct SplitLine {
  bool help = false;                 // -h or --help before the program
  std::vector<std::string> options;  // full names with dashes; a value is a word of its own
  std::vector<std::string> program;  // the program and its arguments, untouched; other commands:
                                     // the arguments
};

// Cuts at the first word that is neither an option nor an option's value (other commands than `run`
// have options behind it, too), or at "--" (which is dropped). Nothing behind the cut is looked at.
// Long names may have underscores and may be
// abbreviated while that is unambiguous.
// InvalidArgument: unknown option (with the nearest known one), ambiguous abbreviation, missing
// value. Unimplemented: an option of torchrun's that is refused.
absl::StatusOr<SplitLine> SplitCommandLine(const std::vector<std::string>& words,
                                           const CommandSpec& command = RunSpec());

// The option that `name`, written without its dashes, means. torchrun's options win over ours where
// an abbreviation fits both. Fails as SplitCommandLine does.
absl::StatusOr<const OptionSpec*> ResolveOption(absl::string_view name,
                                                const CommandSpec& command = RunSpec());

}  // namespace muster

#endif  // MUSTER_LAUNCHER_COMMAND_LINE_H_
