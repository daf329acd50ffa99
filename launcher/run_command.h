#ifndef MUSTER_LAUNCHER_RUN_COMMAND_H_
#define MUSTER_LAUNCHER_RUN_COMMAND_H_

#include <string>
#include <vector>

#include "base/env.h"
#include "launcher/plan.h"

namespace muster {

// `muster run`: plans, then runs one node of the job to its end, and returns the exit code. Call it
// from main(), before any thread exists. `words` is what follows `run`; `argv` is main's own, with
// which this process becomes `muster-cluster` when the job spans nodes and this program has no
// gRPC.
int RunCommand(const std::vector<std::string>& words, const EnvMap& env, char** argv);

// Runs a plan to its end, or prints it; the rest is as above.
int RunPlan(Plan* plan, bool is_dry_run, char** argv);

// The file of this name in this program's folder, whether it is there or not.
std::string PathBesideMuster(const char* name);

// Becomes the program `muster-cluster` in this program's folder, with the same arguments,
// environment and process id. Returns only when that fails: 127, or 126 when it is there and cannot
// be executed, after one line on stderr.
int BecomeCluster(char** argv);

}  // namespace muster

#endif  // MUSTER_LAUNCHER_RUN_COMMAND_H_
