#include <chrono>
#include <string>
#include <utility>

#include "rendezvous/round_limits.h"
#include "rendezvous/round_machine.h"

// Nodes, or all of them, that an operator takes out at a commit point.

namespace muster {

void RoundMachine::On(const DrainRequested& event) {
  if (phase_ == RoundPhase::kClosed || !settings_) return;
  const bool whole_job = event.node_id.empty();
  Node* const node = roster_.Find(event.node_id);
  if (!whole_job) {
    if (node == nullptr || !node->attached() || node->leaving) return;
    node->draining = true;
    Changed();
    roster_.Touch(*node);
    if (node->group_rank < 0) return LetGo(*node, event.who);
  } else if (seats_.empty()) {
    const Reason reason{ReasonCode::kJobDrained, event.who};
    return Close({true, 0, Sentence(reason)}, reason);
  }
  const Duration zero = Duration::zero();
  const Duration patience = event.at_most > zero ? event.at_most : settings_->join_timeout;
  DrainOrder order = drain_.value_or(DrainOrder());
  order.who = event.who;
  order.whole_job |= whole_job;
  order.patience = patience;
  order.deadline = now_ + patience;
  drain_ = order;
  Changed();
}

// All members are told: whose peers stop at another step than they cannot come to that point.
void RoundMachine::TellDrain() {
  if (drain_->told_generation == generation_) return;
  drain_->told_generation = generation_;
  if (drain_->deadline == kNever) drain_->deadline = now_ + drain_->patience;
  SetReason(DrainReason());
  for (const Seat& seat : seats_.all()) {
    if (!seat.lost && seat.phase == WorkersPhase::kRunning) SendDrain(*roster_.Find(seat.node_id));
  }
}

void RoundMachine::SendDrain(const Node& node) {
  const std::string what = drain_->whole_job ? "the job" : "a node";
  out_.Send(node.stream, Drain{generation_, what + " is drained by " + drain_->who});
}

Reason RoundMachine::DrainReason() const {
  return {ReasonCode::kDraining, "", static_cast<int64_t>(seats_.succeeded()),
          static_cast<int64_t>(seats_.size())};
}

void RoundMachine::CutDrain() {
  const auto waited = std::chrono::floor<std::chrono::milliseconds>(drain_->patience);
  EndGeneration({ReasonCode::kDrainCut, drain_->who, waited.count()});
}

// The generation has ended, in whatever way. True when the job has, too.
bool RoundMachine::FinishDrain(const std::optional<Failure>& failure, bool all_succeeded) {
  const DrainOrder order = *std::exchange(drain_, std::nullopt);
  if (!order.whole_job) {
    for (auto& [id, node] : roster_.nodes()) {
      if (node.draining && !node.leaving) LetGo(node, order.who);
    }
    return false;
  }
  if (all_succeeded) {
    const Reason reason{ReasonCode::kJobDrained, order.who};
    Close({true, 0, Sentence(reason)}, reason);
  } else if (failure) {
    CloseFailed(*failure, ReasonCode::kJobCutShort, order.who);
  } else {
    const Reason reason{ReasonCode::kJobCutShort, order.who, 0, 0, Sentence(reason_)};
    Close({false, kExitStopped, Sentence(reason)}, reason);
  }
  return true;
}

// Its workers have ended, or it had none.
void RoundMachine::LetGo(Node& node, const std::string& who) {
  const Reason reason{ReasonCode::kNodeDrained, node.id, 0, 0, who};
  out_.Log(reason);
  node.leaving = true;
  Changed();
  roster_.Touch(node);
  if (node.attached()) out_.Send(node.stream, Drained{Sentence(reason)});
}

}  // namespace muster
