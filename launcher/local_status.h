#ifndef MUSTER_LAUNCHER_LOCAL_STATUS_H_
#define MUSTER_LAUNCHER_LOCAL_STATUS_H_

#include "base/env.h"
#include "launcher/options.h"

namespace muster {

// `muster status --local`: asks each launcher of this user on this machine for its node, prints the
// answers on stdout, and returns the exit code (docs/EXIT_CODES.md). Needs no master and no gRPC.
// Blocks, for --timeout at most.
int LocalStatus(const Options& options, const EnvMap& env);

}  // namespace muster

#endif  // MUSTER_LAUNCHER_LOCAL_STATUS_H_
