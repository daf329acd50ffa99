#ifndef MUSTER_LAUNCHER_PLAN_H_
#define MUSTER_LAUNCHER_PLAN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/agent_options.h"
#include "base/env.h"
#include "base/log.h"
#include "launcher/machine_probe.h"
#include "launcher/options.h"

namespace muster {

// A value of the plan for --dry-run: "workers", "2", "--nproc-per-node".
struct PlanLine {
  std::string name;
  std::string value;
  std::string from;
};

// What `muster run` is going to do.
struct Plan {
  AgentOptions agent;
  // agent.node_id is only a base: several agents of one host may have it (launcher/node_name.h).
  bool node_id_needs_slot = false;
  LogLevel log_level = LogLevel::kWarning;
  std::vector<std::string> warnings;
  std::vector<std::string> remarks;  // for the log level debug
  std::vector<PlanLine> lines;

  // True when the job needs a master that other nodes can reach.
  bool spans_nodes() const { return !agent.single_node(); }
};

// Makes options, environment and machine into one plan, or says in one line why that cannot be:
// InvalidArgument (exit code 2): options that contradict each other. FailedPrecondition and
// Unimplemented (78): this machine does not have it, or it is not built yet. NotFound (127),
// PermissionDenied (126): the program. Changes nothing on the machine.
absl::StatusOr<Plan> MakePlan(const Options& options, const EnvMap& env, MachineProbe& machine);

// The text of --dry-run: one line for each value, with where it comes from, and the warnings.
std::string DryRunText(const Plan& plan);

}  // namespace muster

#endif  // MUSTER_LAUNCHER_PLAN_H_
