#include <algorithm>
#include <string>
#include <utility>

#include "rendezvous/round_limits.h"
#include "rendezvous/round_machine.h"

// How a generation ends, how its incident is classified, and how the job ends.

namespace muster {

// Idempotent: a generation that ends already takes up one more cause.
void RoundMachine::EndGeneration(const Reason& cause) {
  Log(cause);
  if (phase_ != RoundPhase::kStopping) reason_ = cause;
  phase_ = RoundPhase::kStopping;
  recovery_deadline_ = kNever;
  for (Seat& seat : seats_) {
    if (seat.lost || seat.phase != WorkersPhase::kRunning) continue;
    MarkStopping(seat);
    Order(nodes_.at(seat.node_id), generation_, cause);
  }
}

void RoundMachine::MarkStopping(Seat& seat) {
  SetPhase(seat, WorkersPhase::kStopping);
  if (seat.stop_by == kNever) seat.stop_by = now_ + settings_->join_timeout;
}

// How long workers may outlive their master, plus 10 % for clocks that run at different speeds.
Duration RoundMachine::StrictFence() const {
  return settings_->master_loss_timeout + settings_->master_loss_timeout / 10;
}

// `node` may be gone afterwards.
void RoundMachine::Lose(Node& node, const Reason& cause) {
  streams_.erase(node.stream);
  node.stream = 0;
  node.waits = false;
  if (phase_ == RoundPhase::kClosed) return;
  Seat* seat = SeatOf(node);
  if (seat != nullptr) {
    if (node.leaving) {
      // That it goes was known, and the others have their order.
      seat->lost = true;
      seat->fenced_until = FenceOf(*seat, node.last_heard);
    } else if (!seat->lost) {
      LoseSeat(*seat, node.last_heard, cause);
    }
    return;
  }
  if (!node.leaving) Log(cause);
  if (node.last_group_rank < 0) {
    nodes_.erase(node.id);
  } else if (!node.leaving) {
    ExpectSuccessor();
  }
}

void RoundMachine::LoseSeat(Seat& seat, Time last_heard, const Reason& cause) {
  seat.lost = true;
  if (seat.phase == WorkersPhase::kSucceeded) return Log(cause);
  incident_.MemberGone();
  ExpectSuccessor();
  seat.fenced_until = FenceOf(seat, last_heard);
  EndGeneration(cause);
}

// Its agent counts from the sending of a heartbeat, which is before the master heard it.
Time RoundMachine::FenceOf(const Seat& seat, Time last_heard) const {
  const bool is_fenced = settings_->fencing == Fencing::kStrict && IsAlive(seat.phase);
  return is_fenced ? last_heard + StrictFence() : Time::min();
}

// A last call counts from here: those who stop their workers meanwhile need not wait twice.
void RoundMachine::ExpectSuccessor() {
  last_call_due_ = true;
  last_call_deadline_ = now_ + settings_->last_call;
}

RoundMachine::Hold RoundMachine::StoppingHold() const {
  Hold hold{{ReasonCode::kStopping, "", 0, static_cast<int64_t>(seats_.size())}, now_};
  for (const Seat& seat : seats_) {
    if (seat.HasEnded(now_)) {
      ++hold.reason.a;
    } else {
      hold.until = std::max(hold.until, seat.lost ? seat.fenced_until : seat.stop_by);
    }
  }
  return hold;
}

void RoundMachine::AdvanceStopping() {
  // The order to stop crossed the news that there was nothing left to stop.
  if (std::all_of(seats_.begin(), seats_.end(), HasSucceeded)) return CloseSucceeded();
  if (std::all_of(seats_.begin(), seats_.end(),
                  [this](const Seat& seat) { return seat.HasEnded(now_); })) {
    FinishIncident();
  }
}

void RoundMachine::FinishIncident() {
  for (const Seat& seat : seats_) {
    const bool never_came_back = seat.node_id.empty();
    if (never_came_back) {
      incident_.MemberGone();
      ExpectSuccessor();
    }
  }
  const Incident incident = std::exchange(incident_, Incident());
  last_size_ = static_cast<int>(seats_.size());
  seats_.clear();
  for (auto& [id, node] : nodes_) {
    node.group_rank = -1;
    node.phase = WorkersPhase::kNone;
  }
  if (incident.charges()) {
    const Failure& cause = *incident.root_cause();
    if (restarts_used_ >= settings_->max_restarts) {
      return CloseFailed(cause, ReasonCode::kJobFailedBudget);
    }
    ++restarts_used_;
    backoff_wait_ = backoff_.AfterFailure(cause.is_quick());
    backoff_until_ = now_ + backoff_wait_;
  } else if (now_ - formed_at_ >= kGotGoing) {
    backoff_.Reset();
  }
  phase_ = RoundPhase::kForming;
}

void RoundMachine::CloseIfAbandoned() {
  if (phase_ == RoundPhase::kClosed || nodes_.empty() || !last_leave_) return;
  if (last_leave_->cause == LeaveCause::kDrained) return;  // its successor is on the way
  for (const auto& [id, node] : nodes_) {
    if (!node.leaving) return;
  }
  for (const Seat& seat : seats_) {
    if (seat.node_id.empty()) return;  // recovering: it may be about to come back
  }
  const Reason reason{ReasonCode::kJobAbandoned, "", 0, 0, last_leave_->detail};
  Close({false, kExitJoinTimeout, Sentence(reason)}, reason);
}

void RoundMachine::CloseSucceeded() { Close({true, 0, ""}, {ReasonCode::kJobSucceeded}); }

void RoundMachine::CloseFailed(const Failure& failure, ReasonCode code) {
  const WorkerFailed& what = failure.what;
  Reason first{ReasonCode::kWorkerFailed, failure.node_id, what.rank, 0, what.status.ToString()};
  if (!what.message.empty()) first.detail += " (" + what.message + ")";
  const Reason reason{code, failure.node_id, restarts_used_, settings_->max_restarts,
                      Sentence(first)};
  const int exit_code = what.status.ok() ? 1 : what.status.ShellCode();
  Close({false, exit_code, Sentence(reason), failure.node_id, what.rank}, reason);
}

void RoundMachine::Close(Verdict verdict, const Reason& reason) {
  Log(reason);
  reason_ = reason;
  phase_ = RoundPhase::kClosed;
  verdict_ = std::move(verdict);
  const JobSettings settings = settings_.value_or(JobSettings());
  exit_barrier_deadline_ = now_ + settings.exit_barrier_timeout;
  join_deadline_ = last_call_deadline_ = recovery_deadline_ = kNever;
  for (Seat& seat : seats_) seat.stop_by = kNever;
  for (auto& [id, node] : nodes_) {
    if (!node.attached() || node.leaving) continue;
    Seat* seat = SeatOf(node);
    if (seat != nullptr && seat->phase == WorkersPhase::kRunning) {
      SetPhase(*seat, WorkersPhase::kStopping);
      Order(node, generation_, reason);
    }
    Send(node.stream, *verdict_);
  }
}

}  // namespace muster
