#ifndef MUSTER_LAUNCHER_SCHEDULER_DEFAULTS_H_
#define MUSTER_LAUNCHER_SCHEDULER_DEFAULTS_H_

#include "absl/status/status.h"
#include "base/env.h"
#include "launcher/options.h"

namespace muster {

// Gives options that nobody chose the values that the cluster's scheduler has put into the
// environment (Source::kScheduler). Pure. Nothing changes with --standalone.
//
//  - Slurm, within a step (srun) of several nodes: --nnodes from SLURM_STEP_NUM_NODES, SLURM_NNODES
//    or SLURM_JOB_NUM_NODES; with it --rdzv-id from SLURM_JOB_ID, --node-rank from SLURM_NODEID,
//    and, when neither endpoint nor rank nor master address is given, --rdzv-endpoint from the
//    first host of SLURM_STEP_NODELIST or SLURM_JOB_NODELIST. In the batch script itself and in
//    an allocation's shell there is one muster, which gets none of this.
//  - Kubernetes indexed jobs: --node-rank from JOB_COMPLETION_INDEX.
//
// FailedPrecondition, in one line with the variable's name: a number or a list of hosts that is
// none; a step with several tasks on a node, where each would be a muster of its own.
absl::Status AdoptSchedulerDefaults(const EnvMap& env, Options* options);

}  // namespace muster

#endif  // MUSTER_LAUNCHER_SCHEDULER_DEFAULTS_H_
