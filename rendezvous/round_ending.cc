#include <algorithm>
#include <string>
#include <utility>

#include "rendezvous/round_limits.h"
#include "rendezvous/round_machine.h"

// How a generation ends, how its incident is classified, and how the job ends.

namespace muster {

// Until when the workers of a lost place may be alive. Its agent counts from the sending of a
// heartbeat, which is before the master heard it.
Time RoundMachine::FenceOf(const Seat& seat, Time last_heard) const {
  const bool is_fenced = settings_->fencing == Fencing::kStrict && IsAlive(seat.phase);
  return is_fenced ? last_heard + settings_->strict_fence() : Time::min();
}

// Of the generation that is under way or being stopped.
void RoundMachine::TakeFailure(const Node& node, const WorkerFailed& failure) {
  incident_.AddFailure(node.id, failure);
  MarkStopping(node.group_rank);
  EndGeneration({ReasonCode::kWorkerFailed, node.id, failure.rank, 0, failure.status.ToString()});
}

// The workers of a member are gone, or go. When no master had answered it for too long, what fails
// elsewhere may be an echo of that.
void RoundMachine::TakeStop(const Node& node, bool fenced) {
  if (fenced && !incident_.member_gone()) {
    incident_.MemberGone();
    return EndGeneration({ReasonCode::kWorkersFenced, node.id});
  }
  if (IsUnderWay()) EndGeneration({ReasonCode::kWorkersVanished, node.id});
}

// Idempotent: a generation that ends already takes up one more cause.
void RoundMachine::EndGeneration(const Reason& cause) {
  Changed();
  out_.Log(cause);
  if (phase_ != RoundPhase::kStopping) {
    reason_ = cause;
    Enter(RoundPhase::kStopping);
  }
  recovery_.deadline = kNever;
  const StopWorkers order{generation_, Sentence(cause)};
  for (size_t rank = 0; rank < seats_.size() && seats_.running() > 0; ++rank) {
    const Seat& seat = seats_[rank];
    if (seat.lost || seat.phase != WorkersPhase::kRunning) continue;
    MarkStopping(rank);
    out_.Send(roster_.Find(seat.node_id)->stream, order);
  }
}

void RoundMachine::MarkStopping(size_t rank) {
  SetPhase(rank, WorkersPhase::kStopping);
  seats_.Update(rank, [this](Seat& seat) {
    if (seat.stop_by == kNever) seat.stop_by = now_ + settings_->join_timeout;
  });
}

void RoundMachine::MarkSucceeded(size_t rank, bool drained) {
  SetPhase(rank, WorkersPhase::kSucceeded);
  seats_.Update(rank, [drained](Seat& seat) { seat.drained = drained; });
}

// `node` may be gone afterwards.
void RoundMachine::Lose(Node& node, const Reason& cause) {
  roster_.Unbind(node);
  node.waits = false;
  if (phase_ == RoundPhase::kClosed) {
    if (node.is_lost()) Changed();
    return;
  }
  const Seat* seat = SeatOf(node);
  if (seat != nullptr) {
    if (node.leaving) {
      // That it goes was known, and the others have their order.
      Changed();
      seats_.Update(node.group_rank, [this, &node](Seat& lost) {
        lost.lost = true;
        lost.fenced_until = FenceOf(lost, node.last_heard);
      });
    } else if (!seat->lost) {
      LoseSeat(node.group_rank, node.last_heard, cause);
    }
    return;
  }
  if (!node.leaving) out_.Log(cause);
  if (node.last_group_rank < 0) {
    if (node.draining || !node.retired.empty()) Changed();
    roster_.Erase(node);
  } else if (!node.leaving) {
    gate_.ExpectSuccessor(now_, *settings_);
  }
}

void RoundMachine::LoseSeat(size_t rank, Time last_heard, const Reason& cause) {
  const bool has_succeeded = HasSucceeded(seats_[rank]);
  seats_.Update(rank, [&](Seat& seat) {
    seat.lost = true;
    seat.awaited = false;
    if (!has_succeeded) seat.fenced_until = FenceOf(seat, last_heard);
  });
  if (has_succeeded) return out_.Log(cause);
  incident_.MemberGone();
  lost_.insert(seats_[rank].node_id);
  gate_.ExpectSuccessor(now_, *settings_);
  EndGeneration(cause);
}

void RoundMachine::AdvanceStopping() {
  // The order to stop crossed the news that there was nothing left to stop.
  const bool was_drained = drain_ || seats_.drained() > 0;
  if (seats_.AllSucceeded() && !was_drained) return Close({true, 0}, {ReasonCode::kJobSucceeded});
  if (seats_.ended(now_) == seats_.size()) FinishIncident();
}

void RoundMachine::FinishIncident() {
  Changed();
  for (const Seat& seat : seats_.all()) {
    const bool never_came_back = seat.awaited;
    // Its stream broke under a master that had been away, and it was not judged by that.
    const bool was_missed = seat.lost && !HasSucceeded(seat) && !incident_.member_gone();
    if (never_came_back || was_missed) {
      incident_.MemberGone();
      gate_.ExpectSuccessor(now_, *settings_);
    }
  }
  if (drain_ || seats_.drained() > 0) incident_.MemberGone();
  last_incident_ = std::exchange(incident_, Incident());
  const Incident& incident = last_incident_;
  const bool all_succeeded = seats_.AllSucceeded();
  gate_.Ended(static_cast<int>(seats_.size()));
  seats_.Reset({});
  for (auto& [id, node] : roster_.nodes()) {
    node.group_rank = -1;
    node.phase = WorkersPhase::kNone;
  }
  // It counts against those that were lost, else against the node of the root cause.
  if (incident.charges()) lost_ = {incident.root_cause()->node_id};
  for (const std::string& id : std::exchange(lost_, {})) {
    failures_.Add(id, now_, *settings_);
    Node* const node = roster_.Find(id);
    if (node != nullptr) node->excluded = failures_.Excludes(id);
  }
  roster_.TouchAll();
  if (reason_.code == ReasonCode::kJobStopped) return CloseStopped();
  if (incident.is_fatal()) return CloseFailed(*incident.root_cause(), ReasonCode::kJobFailedFatal);
  if (drain_ && FinishDrain(incident.root_cause(), all_succeeded)) return;
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
  Enter(RoundPhase::kForming);
}

void RoundMachine::CloseIfAbandoned() {
  if (phase_ == RoundPhase::kClosed || nodes().empty() || !last_leave_) return;
  // How it ends is known when its workers are gone.
  if (phase_ == RoundPhase::kStopping) return;
  if (last_leave_->cause == LeaveCause::kDrained) return;  // its successor is on the way
  if (static_cast<size_t>(counts().leaving) < nodes().size()) return;
  for (const Seat& seat : seats_.all()) {
    if (seat.awaited) return;  // it may be about to come back
  }
  // Who comes now is taken in; after the verdict it would begin a new instance beside its workers.
  if (seats_.ended(now_) < seats_.size()) return;
  const Reason reason{ReasonCode::kJobAbandoned, "", 0, 0, last_leave_->detail};
  Close({false, kExitJoinTimeout, Sentence(reason)}, reason);
}

void RoundMachine::CloseStopped() { Close({false, kExitStopped, Sentence(reason_)}, reason_); }

void RoundMachine::CloseFailed(const Failure& failure, ReasonCode code,
                               const std::string& drainer) {
  const WorkerFailed& what = failure.what;
  Reason first{ReasonCode::kWorkerFailed, failure.node_id, what.rank, 0, what.status.ToString()};
  if (!what.message.empty()) first.detail += " (" + what.message + ")";
  const bool never_started = code == ReasonCode::kJobFailedStart;
  const std::string subject = drainer.empty() ? failure.node_id : drainer;
  const Reason reason{code, subject, never_started ? gate_.quick_failures() : restarts_used_,
                      never_started ? settings_->max_start_failures : settings_->max_restarts,
                      Sentence(first)};
  const int exit_code = what.status.ok() ? 1 : what.status.ShellCode();
  Close({false, exit_code, Sentence(reason), failure.node_id, what.rank, what}, reason);
}

void RoundMachine::Close(Verdict verdict, const Reason& reason) {
  out_.Log(reason);
  reason_ = reason;
  Enter(RoundPhase::kClosed);
  verdict_ = std::move(verdict);
  Changed();
  const JobSettings settings = settings_.value_or(JobSettings());
  exit_barrier_deadline_ = now_ + settings.exit_barrier_timeout;
  recovery_.deadline = kNever;
  for (auto& [id, node] : roster_.nodes()) {
    if (node.attached() && !node.leaving) out_.Send(node.stream, *verdict_);
  }
}

}  // namespace muster
