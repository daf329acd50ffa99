#include "launcher/plan.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "launcher/option_values.h"
#include "launcher/plan_parts.h"
#include "launcher/scheduler_defaults.h"

namespace muster {

absl::StatusOr<Plan> MakePlan(const Options& chosen, const EnvMap& env, MachineProbe& machine) {
  if (chosen.program.empty()) {
    return absl::InvalidArgumentError(
        "no program to run: 'muster run [OPTIONS] PROGRAM [ARGUMENTS...]' needs one");
  }
  Plan plan;
  plan.log_level = ParseLogLevel(chosen.text("log-level")).value();
  plan.warnings = UnknownPetVariables(env);
  Options options = chosen;
  absl::Status status = AdoptSchedulerDefaults(env, &options);
  if (status.ok()) status = PlanWorkers(options, env, machine, &plan);
  if (status.ok()) status = PlanRendezvous(options, env, machine, &plan);
  if (status.ok()) status = PlanSecurity(options, &plan);
  if (status.ok()) status = PlanRun(options, env, &plan);
  if (status.ok()) status = PlanCommand(options, env, machine, &plan);
  if (!status.ok()) return status;
  return plan;
}

std::string DryRunText(const Plan& plan) {
  size_t name_width = 0;
  size_t value_width = 0;
  constexpr size_t kValueWidthMax = 48;
  for (const PlanLine& line : plan.lines) {
    name_width = std::max(name_width, line.name.size());
    if (line.value.size() <= kValueWidthMax) value_width = std::max(value_width, line.value.size());
  }
  std::string text;
  for (const PlanLine& line : plan.lines) {
    std::string name = line.name, value = line.value.empty() ? "-" : line.value;
    name.resize(name_width, ' ');
    value.resize(std::max(value.size(), value_width), ' ');
    absl::StrAppend(&text, name, "  ", value, "  ", line.from, "\n");
  }
  for (const std::string& warning : plan.warnings) {
    absl::StrAppend(&text, "warning: ", warning, "\n");
  }
  return text;
}

}  // namespace muster
