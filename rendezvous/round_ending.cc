#include <algorithm>
#include <string>
#include <utility>

#include "rendezvous/round_limits.h"
#include "rendezvous/round_machine.h"

// How a generation ends, how its incident is classified, and how the job ends.

namespace muster {
namespace {

// Until when the workers of a lost place may be alive. Its agent counts from the sending of a
// heartbeat, which is before the master heard it.
Time FenceOf(const JobSettings& settings, const Seat& seat, Time last_heard) {
  const bool is_fenced = settings.fencing == Fencing::kStrict && IsAlive(seat.phase);
  return is_fenced ? last_heard + settings.strict_fence() : Time::min();
}

}  // namespace

// Of the generation that is under way or being stopped.
void RoundMachine::TakeFailure(const Node& node, Seat& seat, const WorkerFailed& failure) {
  incident_.AddFailure(node.id, failure);
  MarkStopping(seat);
  EndGeneration({ReasonCode::kWorkerFailed, node.id, failure.rank, 0, failure.status.ToString()});
  if (!failure.can_restart) CloseFailed({node.id, failure}, ReasonCode::kJobFailedFatal);
}

// Idempotent: a generation that ends already takes up one more cause.
void RoundMachine::EndGeneration(const Reason& cause) {
  Changed();
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
      Changed();
      seat->lost = true;
      seat->fenced_until = FenceOf(*settings_, *seat, node.last_heard);
    } else if (!seat->lost) {
      LoseSeat(*seat, node.last_heard, cause);
    }
    return;
  }
  if (!node.leaving) Log(cause);
  if (node.last_group_rank < 0) {
    if (!node.retired.empty()) Changed();
    nodes_.erase(node.id);
  } else if (!node.leaving) {
    gate_.ExpectSuccessor(now_, *settings_);
  }
}

void RoundMachine::LoseSeat(Seat& seat, Time last_heard, const Reason& cause) {
  seat.lost = true;
  seat.awaited = false;
  if (seat.phase == WorkersPhase::kSucceeded) return Log(cause);
  incident_.MemberGone();
  gate_.ExpectSuccessor(now_, *settings_);
  seat.fenced_until = FenceOf(*settings_, seat, last_heard);
  EndGeneration(cause);
}

Hold RoundMachine::StoppingHold(Time now) const {
  Hold hold{{ReasonCode::kStopping, "", 0, static_cast<int64_t>(seats_.size())}, now};
  for (const Seat& seat : seats_) {
    if (seat.HasEnded(now)) {
      ++hold.reason.a;
    } else {
      hold.until = std::max(hold.until, seat.lost ? seat.fenced_until : seat.stop_by);
    }
  }
  return hold;
}

void RoundMachine::AdvanceStopping() {
  // The order to stop crossed the news that there was nothing left to stop.
  if (std::all_of(seats_.begin(), seats_.end(), HasSucceeded))
    return Close({true, 0}, {ReasonCode::kJobSucceeded});
  if (std::all_of(seats_.begin(), seats_.end(),
                  [this](const Seat& seat) { return seat.HasEnded(now_); })) {
    FinishIncident();
  }
}

void RoundMachine::FinishIncident() {
  Changed();
  for (const Seat& seat : seats_) {
    const bool never_came_back = seat.awaited;
    if (never_came_back) {
      incident_.MemberGone();
      gate_.ExpectSuccessor(now_, *settings_);
    }
  }
  const Incident incident = std::exchange(incident_, Incident());
  gate_.Ended(static_cast<int>(seats_.size()));
  seats_.clear();
  for (auto& [id, node] : nodes_) {
    node.group_rank = -1;
    node.phase = WorkersPhase::kNone;
  }
  if (incident.charges()) {
    const Failure& cause = *incident.root_cause();
    gate_.AfterFailure(cause.is_quick(), now_, *settings_);
    if (restarts_used_ >= settings_->max_restarts) {
      return CloseFailed(cause, ReasonCode::kJobFailedBudget);
    }
    const int limit = settings_->max_start_failures;
    if (limit > 0 && gate_.quick_failures() >= limit) {
      return CloseFailed(cause, ReasonCode::kJobFailedStart);
    }
    ++restarts_used_;
  } else if (now_ - formed_at_ >= kGotGoing) {
    gate_.GotGoing();
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
    if (seat.awaited) return;  // it may be about to come back
    // Who comes now is taken in; after the verdict it would begin a new instance beside its
    // workers.
    if (!seat.HasEnded(now_)) return;
  }
  const Reason reason{ReasonCode::kJobAbandoned, "", 0, 0, last_leave_->detail};
  Close({false, kExitJoinTimeout, Sentence(reason)}, reason);
}

void RoundMachine::CloseFailed(const Failure& failure, ReasonCode code) {
  const WorkerFailed& what = failure.what;
  Reason first{ReasonCode::kWorkerFailed, failure.node_id, what.rank, 0, what.status.ToString()};
  if (!what.message.empty()) first.detail += " (" + what.message + ")";
  const bool never_started = code == ReasonCode::kJobFailedStart;
  const Reason reason{
      code, failure.node_id, never_started ? gate_.quick_failures() : restarts_used_,
      never_started ? settings_->max_start_failures : settings_->max_restarts, Sentence(first)};
  const int exit_code = what.status.ok() ? 1 : what.status.ShellCode();
  Close({false, exit_code, Sentence(reason), failure.node_id, what.rank, what}, reason);
}

void RoundMachine::Close(Verdict verdict, const Reason& reason) {
  Log(reason);
  reason_ = reason;
  phase_ = RoundPhase::kClosed;
  Changed();
  verdict_ = std::move(verdict);
  const JobSettings settings = settings_.value_or(JobSettings());
  exit_barrier_deadline_ = now_ + settings.exit_barrier_timeout;
  recovery_deadline_ = kNever;
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
