#include "rendezvous/job_status.h"

#include <algorithm>
#include <optional>

namespace muster {
namespace {

NodeState StateOfMember(const Node& node, const Seat& seat) {
  switch (seat.phase) {
    case WorkersPhase::kNone:
    case WorkersPhase::kRunning:
      if (node.draining) return NodeState::kDraining;
      return node.ready     ? NodeState::kReady
             : node.started ? NodeState::kRunning
                            : NodeState::kStarting;
    case WorkersPhase::kStopping:
      return NodeState::kStopping;
    case WorkersPhase::kStopped:
      return NodeState::kStopped;
    case WorkersPhase::kSucceeded:
      return NodeState::kSucceeded;
  }
  return NodeState::kWaiting;
}

NodeState StateOf(const Node& node, const Seat* seat) {
  const bool is_done = seat != nullptr && HasSucceeded(*seat);
  if (is_done) return NodeState::kSucceeded;
  if (!node.attached()) return node.is_lost() ? NodeState::kLost : NodeState::kLeft;
  if (node.leaving) return NodeState::kLeaving;
  if (seat != nullptr) return StateOfMember(node, *seat);
  const bool is_spare = node.waits && node.wait_reason.code == ReasonCode::kSpare;
  return is_spare ? NodeState::kSpare : NodeState::kWaiting;
}

std::optional<Duration> Left(Time until, Time now) {
  if (until == kNever) return std::nullopt;
  return std::max(until - now, Duration::zero());
}

NodeStatus NodeStatusOf(const Node& node, const Seat* seat, Time now) {
  NodeStatus status;
  status.id = node.id;
  status.state = StateOf(node, seat);
  status.address = node.address.empty() ? node.peer_address : node.address;
  status.slots = node.hello.slots;
  if (seat != nullptr) {
    status.group_rank = seat->assignment.group_rank;
    status.first_rank = seat->assignment.rank_base;
  }
  if (node.attached()) status.heard_ago = std::max(now - node.last_heard, Duration::zero());
  status.step = node.step;
  if (node.step) status.progress_ago = std::max(now - node.progress_at, Duration::zero());
  if (node.waits) {
    status.reason_label = Label(node.wait_reason.code);
    status.reason = Sentence(node.wait_reason);
    status.time_left = Left(node.wait_until, now);
  }
  return status;
}

// A place whose node is gone: lost, or done and gone.
NodeStatus EmptySeat(const Seat& seat, size_t group_rank) {
  NodeStatus status;
  status.id = seat.node_id;
  status.state = HasSucceeded(seat) ? NodeState::kSucceeded : NodeState::kLost;
  status.group_rank = static_cast<int>(group_rank);
  if (seat.incarnation != 0) status.first_rank = seat.assignment.rank_base;
  return status;
}

// The place that the node holds in the current generation, or nullptr.
const Seat* SeatOf(const RoundMachine& machine, const Node& node) {
  const auto rank = static_cast<size_t>(node.group_rank);
  if (node.group_rank < 0 || rank >= machine.seats().size()) return nullptr;
  const Seat& seat = machine.seats()[rank];
  return node.hello.incarnation == seat.incarnation ? &seat : nullptr;
}

std::vector<NodeStatus> NodesOf(const RoundMachine& machine, Time now) {
  std::vector<NodeStatus> all;
  all.reserve(std::max(machine.seats().size(), machine.nodes().size()));
  for (size_t rank = 0; rank < machine.seats().size(); ++rank) {
    const Seat& seat = machine.seats()[rank];
    const auto node = machine.nodes().find(seat.node_id);
    const bool is_here = node != machine.nodes().end() && SeatOf(machine, node->second) == &seat;
    all.push_back(is_here ? NodeStatusOf(node->second, &seat, now) : EmptySeat(seat, rank));
  }
  for (const auto& [id, node] : machine.nodes()) {
    if (SeatOf(machine, node) == nullptr) all.push_back(NodeStatusOf(node, nullptr, now));
  }
  return all;
}

// What is counted over all nodes, in one walk.
void AddNodes(const RoundMachine& machine, Time now, JobStatus* status) {
  Time progress_at{};
  for (const auto& [id, node] : machine.nodes()) {
    if (node.attached() && node.group_rank < 0) ++status->waiting;
    if (const Seat* seat = SeatOf(machine, node)) {
      status->workers[static_cast<size_t>(StateOf(node, seat))] += node.hello.slots;
    }
    if (!node.attached() || !node.step) continue;
    const bool is_behind = !status->step || *node.step < *status->step;
    if (is_behind || (*node.step == *status->step && node.progress_at > progress_at)) {
      status->step = node.step;
      progress_at = node.progress_at;
    }
  }
  if (status->step) status->progress_ago = std::max(now - progress_at, Duration::zero());
}

}  // namespace

JobStatus StatusOf(const RoundMachine& machine, const IncidentRecorder& recorder, Time now,
                   StatusDetail detail) {
  JobStatus status;
  status.job_id = machine.job_id();
  status.instance = machine.instance();
  status.phase = machine.phase();
  status.generation = machine.generation();
  if (const auto assigned_at = recorder.assigned_at()) status.generation_age = now - *assigned_at;
  const std::optional<Hold> hold = machine.CurrentHold(now);
  const Reason& reason = hold ? hold->reason : machine.reason();
  status.reason_label = Label(reason.code);
  status.reason = Sentence(reason);
  if (hold) status.time_left = Left(hold->until, now);
  if (machine.settings()) {
    status.nodes_min = machine.settings()->nodes_min;
    status.nodes_max = machine.settings()->nodes_max;
    status.restarts_max = machine.settings()->max_restarts;
  }
  status.restarts_used = machine.restarts_used();
  status.members = static_cast<int>(machine.seats().size());
  AddNodes(machine, now, &status);
  if (!machine.seats().empty()) status.world_size = machine.seats().front().assignment.world_size;
  status.verdict = machine.verdict();
  if (detail == StatusDetail::kSummary) return status;
  status.nodes = NodesOf(machine, now);
  status.incidents.assign(recorder.incidents().begin(), recorder.incidents().end());
  return status;
}

const char* Label(RoundPhase phase) {
  switch (phase) {
    case RoundPhase::kForming:
      return "forming";
    case RoundPhase::kRecovering:
      return "recovering";
    case RoundPhase::kRunning:
      return "running";
    case RoundPhase::kStopping:
      return "stopping";
    case RoundPhase::kClosed:
      return "closed";
  }
  return "";
}

const char* Label(NodeState state) {
  switch (state) {
    case NodeState::kWaiting:
      return "waiting";
    case NodeState::kSpare:
      return "spare";
    case NodeState::kStarting:
      return "starting";
    case NodeState::kRunning:
      return "running";
    case NodeState::kReady:
      return "ready";
    case NodeState::kStopping:
      return "stopping";
    case NodeState::kStopped:
      return "stopped";
    case NodeState::kSucceeded:
      return "succeeded";
    case NodeState::kLeaving:
      return "leaving";
    case NodeState::kLost:
      return "lost";
    case NodeState::kDraining:
      return "draining";
    case NodeState::kLeft:
      return "left";
  }
  return "";
}

}  // namespace muster
