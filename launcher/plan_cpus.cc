#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "agent/numa_plan.h"
#include "agent/topology_sysfs.h"
#include "launcher/option_values.h"
#include "launcher/plan_parts.h"

namespace muster {
namespace {

// The NUMA node of each GPU that the workers see, in their order.
std::vector<int> NodesOfGpus(const EnvMap& env, MachineProbe& machine) {
  const std::vector<Gpu> gpus = machine.Gpus();
  std::vector<int> nodes;
  for (int gpu : VisibleGpus(gpus, env)) {
    nodes.push_back(gpu < 0 ? -1 : machine.NumaNodeOf(gpus[gpu]));
  }
  return nodes;
}

}  // namespace

absl::Status PlanBinding(const Options& options, const EnvMap& env, MachineProbe& machine,
                         Plan* plan) {
  const Setting& setting = options.at("numa-binding");
  if (setting.text.empty()) return absl::OkStatus();
  const NumaBinding binding = ParseNumaBinding(setting.text).value();
  const std::vector<int> gpu_nodes = NodesOfGpus(env, machine);
  absl::StatusOr<std::vector<std::vector<int>>> cpus =
      PlanCpus(binding, machine.ReadTopology(), gpu_nodes, plan->agent.slots);
  if (!cpus.ok()) {
    return absl::Status(cpus.status().code(),
                        absl::StrCat(setting.from, ": ", cpus.status().message()));
  }
  for (size_t rank = 0; rank < cpus->size(); ++rank) {
    const std::vector<int>& list = (*cpus)[rank];
    plan->agent.cpus.emplace_back(list.begin(), list.end());
    plan->lines.push_back({absl::StrCat("CPUs of local rank ", rank), CpuListText(list),
                           absl::StrCat(setting.from, " ", setting.text,
                                        gpu_nodes.empty() ? ", NUMA nodes in turn" : "")});
  }
  return absl::OkStatus();
}

}  // namespace muster
