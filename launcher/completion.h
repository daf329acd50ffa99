#ifndef MUSTER_LAUNCHER_COMPLETION_H_
#define MUSTER_LAUNCHER_COMPLETION_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "launcher/option_table.h"

// Scripts with which a shell completes the command line, made from launcher/option_table.h. Pure.

namespace muster {

// For "bash", "zsh" or "fish"; any other shell ends the process (--print-completion has checked
// it). They complete commands, options and the values that can be listed, for `muster run` and for
// `torchrun`; the program's own words complete as they would without muster.
std::string CompletionScript(absl::string_view shell);

// The words that an option's metavar lists: inherit and none for "inherit|none|RANK".
std::vector<std::string> ListedValues(const OptionSpec& spec);

}  // namespace muster

#endif  // MUSTER_LAUNCHER_COMPLETION_H_
