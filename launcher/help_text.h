#ifndef MUSTER_LAUNCHER_HELP_TEXT_H_
#define MUSTER_LAUNCHER_HELP_TEXT_H_

#include <string>

#include "launcher/option_table.h"

// What muster says of itself, made from launcher/option_table.h. Pure.

namespace muster {

// `muster --help`: the commands.
std::string HelpText();

// `muster run --help`: every option.
std::string RunHelpText();

// `muster status --help` and the like.
std::string CommandHelpText(const CommandSpec& command);

// docs/COMMANDS.md.
std::string CommandsDocument();

}  // namespace muster

#endif  // MUSTER_LAUNCHER_HELP_TEXT_H_
