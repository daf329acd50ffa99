#ifndef MUSTER_LAUNCHER_CONTROL_COMMAND_H_
#define MUSTER_LAUNCHER_CONTROL_COMMAND_H_

#include "launcher/option_table.h"
#include "launcher/options.h"

namespace muster {

// `muster status`, `stop` and `drain`: asks a master, prints its answer on stdout, and returns the
// exit code (docs/EXIT_CODES.md). Blocks. In muster-cluster only.
int ControlCommand(const CommandSpec& command, const Options& options);

}  // namespace muster

#endif  // MUSTER_LAUNCHER_CONTROL_COMMAND_H_
