#include "agent/node_status.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/json_text.h"
#include "base/one_line.h"

namespace muster {
namespace {

const char* PhaseWord(SupervisorPhase phase) {
  switch (phase) {
    case SupervisorPhase::kJoining:
      return "joining";
    case SupervisorPhase::kRunning:
      return "running";
    case SupervisorPhase::kStopping:
      return "stopping";
    case SupervisorPhase::kSucceeded:
      return "succeeded";
    case SupervisorPhase::kFinishing:
    case SupervisorPhase::kEnded:
      return "finishing";
  }
  return "";
}

const char* StateWord(const Worker& worker) {
  switch (worker.state) {
    case Worker::State::kStarting:
      return "starting";
    case Worker::State::kRunning:
      return worker.is_ready ? "ready" : "running";
    case Worker::State::kEnded:
      return "ended";
  }
  return "";
}

int64_t Milliseconds(Duration span) {
  return std::chrono::floor<std::chrono::milliseconds>(span).count();
}

std::string Number(const std::optional<int64_t>& number, const char* none) {
  return number ? absl::StrCat(*number) : none;
}

std::optional<int64_t> Age(const WorkerTable& workers, Time now) {
  const auto& slowest = workers.slowest();
  if (!slowest) return std::nullopt;
  return Milliseconds(now - slowest->since);
}

std::optional<int64_t> StepOf(const WorkerTable& workers) {
  const auto& slowest = workers.slowest();
  return slowest ? std::optional<int64_t>(slowest->step) : std::nullopt;
}

}  // namespace

std::string NodeStatusTable(const NodeIdentity& node, const SupervisorMachine& machine, Time now) {
  const Assignment& place = machine.assignment();
  const std::vector<Worker>& workers = machine.workers().workers();
  std::string text = absl::StrCat(OneLine(node.job_id), ": ", PhaseWord(machine.phase()),
                                  ": generation ", place.generation, " of ", workers.size(),
                                  workers.size() == 1 ? " worker" : " workers", " on this node; ");
  if (const auto step = StepOf(machine.workers())) {
    absl::StrAppend(&text, "step ", *step, " ", *Age(machine.workers(), now) / 1000, "s ago; ");
  }
  absl::StrAppend(&text, place.restart_count, " of ", node.restarts_max, " restarts used; pid ",
                  node.launcher_pid, "\n");
  constexpr size_t kWidths[] = {8, 11, 11, 0};
  const auto add = [&](const std::vector<std::string>& cells) {
    for (size_t i = 0; i < cells.size(); ++i) {
      const size_t width = std::max(kWidths[i], cells[i].size() + 1);
      absl::StrAppend(&text, cells[i]);
      if (i + 1 < cells.size()) text.append(width - cells[i].size(), ' ');
    }
    text += '\n';
  };
  add({"RANK", "PID", "STATE", "STEP"});
  for (size_t i = 0; i < workers.size(); ++i) {
    add({absl::StrCat(place.rank_base + static_cast<int>(i)),
         workers[i].pid > 0 ? absl::StrCat(workers[i].pid) : "-", StateWord(workers[i]),
         Number(workers[i].step, "-")});
  }
  return text;
}

std::string NodeStatusJson(const NodeIdentity& node, const SupervisorMachine& machine, Time now) {
  const Assignment& place = machine.assignment();
  std::string text = absl::StrCat(
      "{\"job\": ", JsonString(node.job_id), ", \"node\": ", JsonString(node.node_id),
      ", \"pid\": ", node.launcher_pid, ", \"phase\": \"", PhaseWord(machine.phase()),
      "\", \"generation\": ", place.generation, ", \"world_size\": ", place.world_size,
      ", \"restarts_used\": ", place.restart_count, ", \"restarts_max\": ", node.restarts_max,
      ", \"step\": ", Number(StepOf(machine.workers()), "null"),
      ", \"progress_ago_ms\": ", Number(Age(machine.workers(), now), "null"), ", \"workers\": [");
  const std::vector<Worker>& workers = machine.workers().workers();
  for (size_t i = 0; i < workers.size(); ++i) {
    const Worker& worker = workers[i];
    absl::StrAppend(&text, i == 0 ? "" : ", ", "{\"local_rank\": ", i,
                    ", \"rank\": ", place.rank_base + static_cast<int>(i),
                    ", \"pid\": ", worker.pid > 0 ? absl::StrCat(worker.pid) : "null",
                    ", \"state\": \"", StateWord(worker),
                    "\", \"step\": ", Number(worker.step, "null"), "}");
  }
  return text + "]}";
}

}  // namespace muster
