#include "launcher/scheduler_defaults.h"

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "launcher/hostlist.h"
#include "launcher/option_values.h"

namespace muster {
namespace {

constexpr int kNumberMax = 1000000;

// The first of `names` that is set and not empty; null: none.
const char* FirstSet(const EnvMap& env, const std::vector<const char*>& names) {
  for (const char* name : names) {
    const std::string* value = FindVariable(env, name);
    if (value != nullptr && !value->empty()) return name;
  }
  return nullptr;
}

absl::Status In(const char* variable, const absl::Status& status) {
  return absl::FailedPreconditionError(absl::StrCat(variable, ": ", status.message()));
}

class SlurmStep {
 public:
  SlurmStep(const EnvMap& env, Options* options) : env_(env), options_(*options) {}

  absl::Status Adopt() {
    absl::Status status = AdoptNodes();
    if (!status.ok() || ParseNodes(options_.text("nnodes"))->max == 1) return status;
    Take("rdzv-id", FirstSet(env_, {"SLURM_JOB_ID", "SLURM_JOBID"}));
    status = AdoptEndpoint();
    if (!status.ok()) return status;
    return AdoptNumber("node-rank", FirstSet(env_, {"SLURM_NODEID"}), 0);
  }

 private:
  void Take(const char* option, const char* variable) {
    if (variable == nullptr || options_.given(option)) return;
    options_.Set(option, {env_.at(variable), Source::kScheduler, variable});
  }

  absl::Status AdoptNumber(const char* option, const char* variable, int min) {
    if (variable == nullptr || options_.given(option)) return absl::OkStatus();
    absl::StatusOr<int> number = ParseWhole(env_.at(variable), min, kNumberMax);
    if (!number.ok()) return In(variable, number.status());
    Take(option, variable);
    return absl::OkStatus();
  }

  absl::Status AdoptNodes() {
    if (options_.given("nnodes")) return absl::OkStatus();
    // "2(x4)": two tasks on each of four nodes.
    const char* tasks = FirstSet(env_, {"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"});
    if (tasks != nullptr && !env_.at(tasks).starts_with("1(") && env_.at(tasks) != "1") {
      return absl::FailedPreconditionError(absl::StrCat(
          tasks, ": ", Quoted(env_.at(tasks)), " tasks on a node, and muster itself starts the ",
          "workers of a node: use srun --ntasks-per-node=1, or pass --nnodes or --standalone"));
    }
    return AdoptNumber(
        "nnodes", FirstSet(env_, {"SLURM_STEP_NUM_NODES", "SLURM_NNODES", "SLURM_JOB_NUM_NODES"}),
        1);
  }

  absl::Status AdoptEndpoint() {
    for (const char* option : {"rdzv-endpoint", "node-rank", "master-addr", "master-port"}) {
      if (options_.given(option)) return absl::OkStatus();
    }
    const char* list = FirstSet(env_, {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"});
    if (list == nullptr) return absl::OkStatus();
    absl::StatusOr<std::vector<std::string>> hosts = ExpandHostlist(env_.at(list));
    if (!hosts.ok()) return In(list, hosts.status());
    options_.Set("rdzv-endpoint", {hosts->front(), Source::kScheduler, list});
    return absl::OkStatus();
  }

  const EnvMap& env_;
  Options& options_;
};

absl::Status AdoptCompletionIndex(const EnvMap& env, Options* options) {
  constexpr char kVariable[] = "JOB_COMPLETION_INDEX";
  const std::string* index = FindVariable(env, kVariable);
  if (index == nullptr || options->at("node-rank").source != Source::kDefault) {
    return absl::OkStatus();
  }
  if (ParseNodes(options->text("nnodes"))->max == 1) return absl::OkStatus();
  absl::StatusOr<int> number = ParseWhole(*index, 0, kNumberMax);
  if (!number.ok()) return In(kVariable, number.status());
  options->Set("node-rank", {*index, Source::kScheduler, kVariable});
  return absl::OkStatus();
}

}  // namespace

absl::Status AdoptSchedulerDefaults(const EnvMap& env, Options* options) {
  if (options->on("standalone")) return absl::OkStatus();
  if (FirstSet(env, {"SLURM_STEP_ID", "SLURM_STEPID"}) != nullptr) {
    absl::Status status = SlurmStep(env, options).Adopt();
    if (!status.ok()) return status;
  }
  return AdoptCompletionIndex(env, options);
}

}  // namespace muster
