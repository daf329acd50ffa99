#include <algorithm>
#include <optional>
#include <string>

#include "rendezvous/round_limits.h"
#include "rendezvous/round_machine.h"

// Messages of nodes that have said Hello, and last wills.

namespace muster {
namespace {

std::string Detail(const Leaving& leaving) {
  if (!leaving.detail.empty()) return leaving.detail;
  switch (leaving.cause) {
    case LeaveCause::kSignal:
      return "a signal";
    case LeaveCause::kDrained:
      return "drained";
    case LeaveCause::kOperator:
      return "an operator took it out";
  }
  return "";
}

}  // namespace

// The place that a message of `generation` is about; nullptr after a message from the past has been
// answered. `may_run`: the message says that workers of that generation may be alive.
const Seat* RoundMachine::CurrentSeat(Node& node, int64_t generation, bool may_run) {
  const Seat* seat = SeatOf(node);
  if (seat != nullptr && generation == generation_) return seat;
  // After the verdict nothing else matters: it is on its way on this very stream.
  if (phase_ == RoundPhase::kClosed) return nullptr;
  AnswerStale(node, generation, may_run);
  return nullptr;
}

void RoundMachine::AnswerStale(Node& node, int64_t generation, bool may_run) {
  const Seat* seat = SeatOf(node);
  if (seat != nullptr && phase_ != RoundPhase::kStopping) {
    return out_.Send(node.stream, seat->assignment);
  }
  if (seat != nullptr && IsAlive(seat->phase)) return Order(node, generation_, reason_);
  if (seat == nullptr && may_run) {
    node.stale_generation = generation;
    return Order(node, generation, {ReasonCode::kStaleWorkers, node.id, generation, generation_});
  }
  node.waits = false;  // it is told anew what it waits for
}

void RoundMachine::Handle(Node& node, const Heartbeat& message) {
  out_.Send(node.stream, HeartbeatAck{message.sequence});
  node.heartbeat_lag = std::max(now_ - node.heartbeat_due, Duration::zero());
  node.heartbeat_due = now_ + settings_->keep_alive_interval;
  const std::optional<Progress>& progress = message.progress;
  if (!progress || progress->generation != generation_ || node.group_rank < 0) return;
  node.step = progress->step;
  node.progress_at = now_ - progress->since;
}

void RoundMachine::Handle(Node& node, const WorkersStarted& message) {
  if (CurrentSeat(node, message.generation, true) != nullptr) node.started = true;
}

void RoundMachine::Handle(Node& node, const WorkersReady& message) {
  if (CurrentSeat(node, message.generation, true) != nullptr) node.ready = true;
}

// True when these were workers of the past.
bool RoundMachine::StaleHaveStopped(Node& node, int64_t generation) {
  if (node.stale_generation == 0 || node.stale_generation != generation) return false;
  node.stale_generation = 0;
  const Seat* seat = SeatOf(node);
  if (seat != nullptr && IsAlive(seat->phase)) SetPhase(node.group_rank, WorkersPhase::kStopped);
  return true;
}

void RoundMachine::Handle(Node& node, const WorkersStopped& message) {
  node.next_port = message.next_port;
  if (StaleHaveStopped(node, message.generation)) return;
  const Seat* seat = CurrentSeat(node, message.generation, false);
  if (seat == nullptr || !IsAlive(seat->phase)) return;
  SetPhase(node.group_rank, WorkersPhase::kStopped);
  TakeStop(node, message.fenced);
}

void RoundMachine::Handle(Node& node, const WorkerFailed& message) {
  const Seat* seat = CurrentSeat(node, message.generation, true);
  if (seat == nullptr || !IsAlive(seat->phase) || phase_ == RoundPhase::kClosed) return;
  TakeFailure(node, message);
}

void RoundMachine::Handle(Node& node, const WorkersSucceeded& message) {
  node.next_port = message.next_port;
  if (StaleHaveStopped(node, message.generation)) return;
  const Seat* seat = CurrentSeat(node, message.generation, false);
  if (seat != nullptr && IsAlive(seat->phase)) MarkSucceeded(node.group_rank, message.drained);
}

void RoundMachine::Handle(Node& node, const Leaving& message) {
  Changed();
  node.leaving = true;
  last_leave_ = message;
  last_leave_->detail = Detail(message);
  const Reason reason{ReasonCode::kNodeLeft, node.id, 0, 0, last_leave_->detail};
  const Seat* seat = SeatOf(node);
  const bool is_needed = seat != nullptr && seat->phase != WorkersPhase::kSucceeded;
  if (phase_ == RoundPhase::kClosed || !is_needed) {
    if (node.last_group_rank >= 0) gate_.ExpectSuccessor(now_, *settings_);
    return out_.Log(reason);
  }
  incident_.MemberGone();
  gate_.ExpectSuccessor(now_, *settings_);
  if (IsAlive(seat->phase)) MarkStopping(node.group_rank);
  EndGeneration(reason);
}

// Where the state has just been saved, a change of membership costs nothing.
void RoundMachine::Handle(Node& node, const CommitPoint& message) {
  if (CurrentSeat(node, message.generation, true) == nullptr) return;
  const bool waited_for = settings_->join_policy == JoinPolicy::kCheckpoint && !drain_;
  if (phase_ == RoundPhase::kRunning && waited_for) TakeIn();
}

void RoundMachine::OnLastWill(StreamId stream, const LastWill& will) {
  out_.Close(stream);
  Node* const node = roster_.Find(will.node_id);
  // A newer process of the node has no part in the place of the older one.
  size_t rank = node != nullptr && node->group_rank >= 0 ? node->group_rank : 0;
  if (node != nullptr && node->attached() && node->hello.incarnation == will.incarnation) {
    out_.Close(node->stream);
    Lose(*node, {ReasonCode::kNodeLostStream, will.node_id});
  }
  if (phase_ == RoundPhase::kClosed || will.generation != generation_) return;
  const auto is_its = [&will](const Seat& seat) {
    return seat.node_id == will.node_id && seat.incarnation == will.incarnation;
  };
  while (rank < seats_.size() && !is_its(seats_[rank])) ++rank;
  if (rank == seats_.size() || !IsAlive(seats_[rank].phase)) return;
  if (seats_[rank].awaited) LoseSeat(rank, now_, {ReasonCode::kNodeLostStream, will.node_id});
  SetPhase(rank, WorkersPhase::kStopped);
  if (IsUnderWay()) {
    incident_.MemberGone();
    EndGeneration({ReasonCode::kNodeLostStream, will.node_id});
  }
}

}  // namespace muster
