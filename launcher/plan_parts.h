#ifndef MUSTER_LAUNCHER_PLAN_PARTS_H_
#define MUSTER_LAUNCHER_PLAN_PARTS_H_

#include "absl/status/status.h"
#include "launcher/plan.h"

// The parts of MakePlan, in the order in which they are called; each fills in its fields of the
// plan and adds lines and warnings. They fail as MakePlan does.

namespace muster {

// How many workers this node has, and what they are called.
absl::Status PlanWorkers(const Options& options, const EnvMap& env, MachineProbe& machine,
                         Plan* plan);

// Which CPUs they run on (--numa-binding). Called by PlanWorkers.
absl::Status PlanBinding(const Options& options, const EnvMap& env, MachineProbe& machine,
                         Plan* plan);

// Job, nodes, endpoint, master address, and the settings that all nodes share.
absl::Status PlanRendezvous(const Options& options, const EnvMap& env, MachineProbe& machine,
                            Plan* plan);

// The lines of the settings that all nodes share. Called by PlanRendezvous, last.
void DescribeSettings(const Options& options, Plan* plan);

// By what this node and the master know each other. Comes after PlanRendezvous.
absl::Status PlanSecurity(const Options& options, Plan* plan);

// Logs, standard input, signals and times.
absl::Status PlanRun(const Options& options, const EnvMap& env, Plan* plan);

// What the workers execute. Comes last: what is wrong with the options is said first.
absl::Status PlanCommand(const Options& options, const EnvMap& env, MachineProbe& machine,
                         Plan* plan);

}  // namespace muster

#endif  // MUSTER_LAUNCHER_PLAN_PARTS_H_
