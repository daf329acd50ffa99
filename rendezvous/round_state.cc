#include "rendezvous/round_state.h"

namespace muster {

bool RoundState::finished() const { return verdict_.has_value() && roster_.attached() == 0; }

void RoundState::Changed() {
  if (generation_ == 0 && phase_ != RoundPhase::kClosed) return;  // there is no record yet
  out_.PersistFirst();
}

void RoundState::Enter(RoundPhase phase) {
  phase_ = phase;
  roster_.TouchAll();
}

bool RoundState::IsUnderWay() const {
  return phase_ == RoundPhase::kRunning || phase_ == RoundPhase::kRecovering;
}

const Seat* RoundState::SeatOf(const Node& node) const {
  return node.group_rank < 0 ? nullptr : &seats_[node.group_rank];
}

void RoundState::SetPhase(size_t rank, WorkersPhase phase) {
  const bool is_lost = seats_[rank].lost;
  if (phase == WorkersPhase::kSucceeded || (phase == WorkersPhase::kStopped && is_lost)) Changed();
  seats_.Update(rank, [phase](Seat& seat) {
    seat.phase = phase;
    if (!IsAlive(phase)) seat.stop_by = kNever;
  });
  Node* const node = roster_.Find(seats_[rank].node_id);
  if (node == nullptr || SeatOf(*node) != &seats_[rank]) return;
  node->phase = phase;
  roster_.Touch(*node);
}

void RoundState::Order(const Node& node, int64_t generation, const Reason& reason) {
  out_.Send(node.stream, StopWorkers{generation, Sentence(reason)});
}

void RoundState::SetReason(const Reason& reason) {
  // Counting up is progress, not a decision.
  if (reason.code != reason_.code) out_.Log(reason);
  reason_ = reason;
}

}  // namespace muster
