#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "launcher/option_values.h"
#include "launcher/plan_parts.h"

namespace muster {
namespace {

struct Counted {
  int slots = 0;
  std::string from;
};

int CountGpus(const EnvMap& env, MachineProbe& machine) {
  return static_cast<int>(VisibleGpus(machine.Gpus(), env).size());
}

absl::StatusOr<Counted> CountSlots(const Setting& setting, const EnvMap& env,
                                   MachineProbe& machine) {
  Slots slots = ParseSlots(setting.text).value();
  switch (slots.how) {
    case SlotCount::kNumber:
      return Counted{slots.number, setting.from};
    case SlotCount::kCpu:
      break;
    case SlotCount::kGpu: {
      int gpus = CountGpus(env, machine);
      if (gpus > 0) return Counted{gpus, absl::StrCat(setting.from, " gpu: GPUs")};
      return absl::FailedPreconditionError(absl::StrCat(
          setting.from, ": 'gpu' and this machine has no usable GPU",
          machine.Gpus().empty() ? "" : " (CUDA_VISIBLE_DEVICES)", ": give a number or cpu"));
    }
    case SlotCount::kAuto: {
      int gpus = CountGpus(env, machine);
      if (gpus > 0) return Counted{gpus, absl::StrCat(setting.from, " auto: GPUs")};
      break;
    }
  }
  return Counted{machine.CpuCount(), absl::StrCat(setting.from, " ", setting.text, ": CPUs")};
}

// With virtual local ranks each worker needs an entry of its own in CUDA_VISIBLE_DEVICES.
absl::Status CheckVirtualRanks(int slots, const EnvMap& env) {
  const std::string* list = FindVariable(env, "CUDA_VISIBLE_DEVICES");
  if (list == nullptr || list->empty()) return absl::OkStatus();
  auto entries = std::count(list->begin(), list->end(), ',') + 1;
  if (entries >= slots) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "--virtual-local-rank: ", slots, " workers and ", entries,
      " entries in CUDA_VISIBLE_DEVICES (", Quoted(*list), "): give one entry for each worker"));
}

// For people, who may paste it into a shell.
std::string ShellText(const std::vector<std::string>& argv) {
  std::vector<std::string> words;
  for (const std::string& word : argv) {
    bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) {
      return absl::ascii_isalnum(c) || absl::StrContains("_-./=:,@+%", c);
    });
    std::string quoted = "'";
    for (char c : word) absl::StrAppend(&quoted, c == '\'' ? "'\\''" : std::string(1, c));
    words.push_back(plain ? word : quoted + "'");
  }
  return absl::StrJoin(words, " ");
}

}  // namespace

absl::Status PlanWorkers(const Options& options, const EnvMap& env, MachineProbe& machine,
                         Plan* plan) {
  AgentOptions& agent = plan->agent;
  absl::StatusOr<Counted> counted = CountSlots(options.at("nproc-per-node"), env, machine);
  if (!counted.ok()) return counted.status();
  agent.slots = counted->slots;
  agent.role = options.text("role");
  agent.virtual_local_rank = options.on("virtual-local-rank");
  if (agent.virtual_local_rank) {
    absl::Status enough = CheckVirtualRanks(agent.slots, env);
    if (!enough.ok()) return enough;
  }
  plan->lines.push_back({"workers on this node", absl::StrCat(agent.slots), counted->from});
  plan->lines.push_back({"role", agent.role, options.at("role").from});
  if (agent.virtual_local_rank) {
    plan->lines.push_back({"local ranks", "virtual", options.at("virtual-local-rank").from});
  }
  if (agent.slots > 1 && FindVariable(env, "OMP_NUM_THREADS") == nullptr) {
    plan->lines.push_back({"OMP_NUM_THREADS", "1", "default with several workers"});
  }
  return PlanBinding(options, env, machine, plan);
}

absl::Status PlanCommand(const Options& options, const EnvMap& env, MachineProbe& machine,
                         Plan* plan) {
  ProgramRequest request = {options.program, options.arguments, options.on("module"),
                            options.on("no-python"), options.on("run-path")};
  auto inspect = [&machine](const std::string& path) { return machine.Inspect(path); };
  absl::StatusOr<std::vector<std::string>> command = WorkerCommand(request, env, inspect);
  if (!command.ok()) return command.status();
  plan->agent.argv = *std::move(command);
  plan->lines.push_back({"command", ShellText(plan->agent.argv), "command line"});
  return absl::OkStatus();
}

}  // namespace muster
