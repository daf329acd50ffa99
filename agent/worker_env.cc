#include "agent/worker_env.h"

#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/exit_status.h"

namespace muster {
namespace {

std::string InheritedOr(const EnvMap& inherited, const std::string& name, const char* otherwise) {
  const std::string* value = FindVariable(inherited, name);
  return value != nullptr ? *value : otherwise;
}

// The one device that this worker shall see, or nothing where no device is visible anyway.
absl::StatusOr<std::optional<std::string>> OwnDevice(int local_rank, const EnvMap& inherited) {
  const std::string* visible = FindVariable(inherited, "CUDA_VISIBLE_DEVICES");
  if (visible == nullptr) return std::to_string(local_rank);
  if (visible->empty()) return std::nullopt;
  const std::vector<std::string> devices = absl::StrSplit(*visible, ',');
  if (local_rank >= static_cast<int>(devices.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("virtual local rank: CUDA_VISIBLE_DEVICES=", *visible, " lists ",
                     devices.size(), " devices, and local rank ", local_rank,
                     " needs one of its own; list more devices or start fewer workers per node"));
  }
  return std::string(absl::StripAsciiWhitespace(devices[local_rank]));
}

std::string SignalNames(const std::vector<int>& signals) {
  return absl::StrJoin(signals, ",",
                       [](std::string* out, int signal) { out->append(SignalName(signal)); });
}

void SetPlace(const WorkerIdentity& worker, const Assignment& assignment, EnvMap& env) {
  env["LOCAL_RANK"] = std::to_string(worker.virtual_local_rank ? 0 : worker.local_rank);
  env["RANK"] = std::to_string(assignment.rank_base + worker.local_rank);
  env["GROUP_RANK"] = std::to_string(assignment.group_rank);
  env["ROLE_RANK"] = std::to_string(assignment.role_rank_base + worker.local_rank);
  env["ROLE_NAME"] = worker.role;
  env["LOCAL_WORLD_SIZE"] = std::to_string(worker.slots);
  env["WORLD_SIZE"] = std::to_string(assignment.world_size);
  env["GROUP_WORLD_SIZE"] = std::to_string(assignment.group_world_size);
  env["ROLE_WORLD_SIZE"] = std::to_string(assignment.role_world_size);
  env["MASTER_ADDR"] = assignment.master_addr;
  env["MASTER_PORT"] = std::to_string(assignment.master_port);
}

void SetElastic(const WorkerIdentity& worker, const Assignment& assignment, EnvMap& env) {
  env["TORCHELASTIC_RESTART_COUNT"] = std::to_string(assignment.restart_count);
  env["TORCHELASTIC_MAX_RESTARTS"] = std::to_string(worker.max_restarts);
  env["TORCHELASTIC_RUN_ID"] = worker.job_id;
  env["TORCHELASTIC_USE_AGENT_STORE"] = "False";
  env["TORCHELASTIC_ERROR_FILE"] = worker.error_file;
  if (!worker.signals_to_handle.empty()) {
    env["TORCHELASTIC_SIGNALS_TO_HANDLE"] = SignalNames(worker.signals_to_handle);
  }
}

}  // namespace

absl::StatusOr<std::vector<std::string>> WorkerEnvironment(const WorkerIdentity& worker,
                                                           const Assignment& assignment,
                                                           const EnvMap& inherited) {
  EnvMap env;
  SetPlace(worker, assignment, env);
  SetElastic(worker, assignment, env);
  env["TORCH_NCCL_ASYNC_ERROR_HANDLING"] =
      InheritedOr(inherited, "TORCH_NCCL_ASYNC_ERROR_HANDLING", "1");
  if (worker.slots > 1) env["OMP_NUM_THREADS"] = InheritedOr(inherited, "OMP_NUM_THREADS", "1");

  env["MUSTER_GENERATION"] = std::to_string(assignment.generation);
  env["MUSTER_NODE_ID"] = worker.node_id;
  if (!worker.local_addr.empty()) env["MUSTER_LOCAL_ADDR"] = worker.local_addr;
  if (!worker.socket_path.empty()) env["MUSTER_SOCKET"] = worker.socket_path;

  if (worker.virtual_local_rank) {
    auto device = OwnDevice(worker.local_rank, inherited);
    if (!device.ok()) return device.status();
    if (*device) env["CUDA_VISIBLE_DEVICES"] = **device;
  }
  for (const auto& [name, value] : worker.extra_env) env[name] = value;

  std::vector<std::string> variables;
  variables.reserve(env.size());
  for (const auto& [name, value] : env) variables.push_back(name + "=" + value);
  return variables;
}

}  // namespace muster
