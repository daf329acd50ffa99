#ifndef MUSTER_LAUNCHER_CHECK_COMMAND_H_
#define MUSTER_LAUNCHER_CHECK_COMMAND_H_

#include <string>
#include <vector>

#include "base/env.h"

namespace muster {

// `muster check`: runs muster-check, or muster-check-torch, as a job on each slot of each node, and
// returns the exit code. The program prints what is found. Where the nodes do not meet at all, this
// process becomes the program, which says why. Call it as RunCommand is called.
int CheckCommand(const std::vector<std::string>& words, const EnvMap& env, char** argv);

}  // namespace muster

#endif  // MUSTER_LAUNCHER_CHECK_COMMAND_H_
