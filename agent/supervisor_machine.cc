#include "agent/supervisor_machine.h"

#include <signal.h>

#include <algorithm>
#include <utility>

#include "agent/supervisor_limits.h"

namespace muster {

SupervisorMachine::SupervisorMachine(SupervisorOptions options)
    : options_(std::move(options)),
      link_(options_.hello.settings, options_.has_remote_master, options_.seed) {}

SupervisorEffects SupervisorMachine::Step(Time now, const SupervisorEvent& event) {
  effects_.clear();
  if (phase_ == SupervisorPhase::kEnded) return {};
  now_ = now;
  if (now >= fence_) FenceHasFallen();
  std::visit([this](const auto& e) { On(e); }, event);
  fence_ = Fence();
  return std::move(effects_);
}

bool SupervisorMachine::HasWorkers() const {
  return phase_ == SupervisorPhase::kRunning || phase_ == SupervisorPhase::kStopping;
}

void SupervisorMachine::On(const Begin&) {
  no_master_since_ = now_;
  if (options_.has_remote_master) still_waiting_at_ = now_ + kFirstWaitNote;
  Do(ReservePort{});
}

void SupervisorMachine::On(const PortReserved& event) {
  if (phase_ == SupervisorPhase::kFinishing) return;
  const bool is_first = options_.hello.next_port == 0 && assignment_.generation == 0;
  if (!event.problem.empty()) Say(NoteLevel::kError, event.problem);
  options_.hello.next_port = event.port;
  if (is_first) {
    Greet();
  } else if (std::exchange(port_for_report_, false)) {
    if (phase_ == SupervisorPhase::kSucceeded) {
      Do(SendToMaster{WorkersSucceeded{assignment_.generation, event.port, drain_asked_}});
    } else if (phase_ == SupervisorPhase::kJoining) {
      Do(SendToMaster{WorkersStopped{assignment_.generation, event.port, fenced_}});
    }
  }
}

void SupervisorMachine::On(const SignalReceived& event) {
  if (event.forward_only) {
    if (HasWorkers()) Do(SignalWorkers{event.signal});
    return;
  }
  if (signalled_at_ == kNever) {
    signalled_at_ = now_;
    Leave(event);
  } else if (now_ >= signalled_at_ + kSameSignal) {
    Say(NoteLevel::kWarning, "again " + SignalName(event.signal) + ": not waiting any longer");
    if (HasWorkers() && !kill_sent_) KillOrGiveUp();
    if (phase_ == SupervisorPhase::kFinishing) EndWith(exit_code_);
  }
}

void SupervisorMachine::On(const SuspendAsked&) {
  // A stop under way has its deadlines; it ends within its grace, and the prompt is back then.
  if (phase_ == SupervisorPhase::kStopping) return;
  // The workers lead sessions of their own: a terminal's SIGTSTP would not reach them, and the
  // kernel ignores it where no shell is the parent.
  if (phase_ == SupervisorPhase::kRunning) Do(SignalTree{SIGSTOP});
  Do(Suspend{});
  if (phase_ == SupervisorPhase::kRunning) Do(SignalTree{SIGCONT});
}

void SupervisorMachine::Leave(const SignalReceived& event) {
  const std::string who =
      event.sender_pid > 0 ? " from pid " + std::to_string(event.sender_pid) : "";
  const std::string what = SignalName(event.signal) + who;
  const bool is_typed = event.sender_pid == 0;
  Say(NoteLevel::kWarning,
      what + ": stopping" + (is_typed && HasWorkers() ? " (again to kill)" : ""));
  if (phase_ == SupervisorPhase::kFinishing) return EndWith(exit_code_);
  outcome_.leaving_signal = event.signal;
  leaving_ = Leaving{assignment_.generation, LeaveCause::kSignal, what};
  Do(SendToMaster{*leaving_});
  if (phase_ == SupervisorPhase::kStopping) {
    if (!kill_sent_) Do(SignalTree{event.signal});
    const bool is_final = stop_cause_ == StopCause::kVerdict ||
                          stop_cause_ == StopCause::kRejected || stop_cause_ == StopCause::kDrained;
    if (!is_final) stop_cause_ = StopCause::kLeaving;
  } else if (phase_ == SupervisorPhase::kRunning) {
    BeginStop(StopCause::kLeaving, event.signal);
  } else {
    Finish(128 + event.signal, kFarewell);
  }
}

void SupervisorMachine::Finish(int exit_code, Duration patience) {
  exit_code_ = exit_code;
  phase_ = SupervisorPhase::kFinishing;
  finish_at_ = now_ + patience;
  no_master_since_ = kNever;
  link_.Close();
  Do(FinishRendezvous{});
}

void SupervisorMachine::EndWith(int exit_code) {
  exit_code_ = exit_code;
  phase_ = SupervisorPhase::kEnded;
  link_.Close();
  Do(End{exit_code});
}

void SupervisorMachine::On(const TimeCame&) {
  if (now_ >= finish_at_) return EndWith(exit_code_);
  // In this order: a stop for want of a master may begin with its grace over already.
  if (now_ >= NoMasterDeadline()) GiveUpWithoutMaster();
  if (now_ >= kill_at_) KillOrGiveUp();
  if (now_ >= StallDeadline()) KillStalled();
  if (phase_ == SupervisorPhase::kEnded) return;
  switch (link_.Due(now_)) {
    case MasterLink::Action::kOpen:
      if (link_.is_silent(now_)) {
        MasterIsGone(options_.endpoint + " has not answered for " +
                     DurationText(options_.hello.settings.lease()));
      }
      Greet();
      break;
    case MasterLink::Action::kHeartbeat:
      Do(SendToMaster{Heartbeat{link_.NextSequence(now_), ProgressNow()}});
      break;
    case MasterLink::Action::kNone:
      break;
  }
  if (now_ >= still_waiting_at_) {
    still_waiting_at_ = kNever;
    if (phase_ != SupervisorPhase::kJoining) return;
    still_waiting_at_ = now_ + kNextWaitNote;
    std::string reason = master_problem_;  // which begins with the endpoint
    if (!wait_reason_.empty() && no_master_since_ == kNever) {
      reason = options_.endpoint + ": " + wait_reason_;
    }
    if (reason.empty()) reason = "no word yet from " + options_.endpoint;
    Say(NoteLevel::kWarning, "still waiting: " + reason);
  }
}

std::optional<Progress> SupervisorMachine::ProgressNow() const {
  const auto& slowest = workers_.slowest();
  if (!slowest || phase_ != SupervisorPhase::kRunning) return std::nullopt;
  return Progress{assignment_.generation, slowest->step, now_ - slowest->since};
}

Time SupervisorMachine::NextDeadline() const {
  if (phase_ == SupervisorPhase::kEnded) return kNever;
  return std::min({finish_at_, kill_at_, StallDeadline(), NoMasterDeadline(), link_.NextDeadline(),
                   still_waiting_at_});
}

}  // namespace muster
