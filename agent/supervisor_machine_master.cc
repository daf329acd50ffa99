#include <signal.h>

#include <algorithm>
#include <utility>

#include "agent/supervisor_limits.h"
#include "agent/supervisor_machine.h"

// The node and its master: what it obeys, what it tells, and how it gets along without one.

namespace muster {

void SupervisorMachine::Greet() {
  Do(OpenStream{});
  link_.Opened(now_);
  const int64_t generation = assignment_.generation;
  Running& running = options_.hello.running;
  running.assignment = assignment_;
  running.phase = WorkersPhase::kNone;
  if (phase_ == SupervisorPhase::kRunning) running.phase = WorkersPhase::kRunning;
  if (phase_ == SupervisorPhase::kStopping) running.phase = WorkersPhase::kStopping;
  if (phase_ == SupervisorPhase::kSucceeded) running.phase = WorkersPhase::kSucceeded;
  if (phase_ == SupervisorPhase::kJoining && generation > 0) running.phase = WorkersPhase::kStopped;
  running.failure = outcome_.failure;
  running.drained = drain_asked_;
  running.fenced = fenced_;
  ++options_.hello.attempt;
  Do(SendToMaster{options_.hello});
  if (generation == 0) return;
  // What may have been said while nobody listened. The master takes each as it takes the first.
  if (leaving_) Do(SendToMaster{*leaving_});
  if (phase_ == SupervisorPhase::kRunning) {
    if (workers_.AllStarted()) Do(SendToMaster{WorkersStarted{generation}});
    if (ready_told_) Do(SendToMaster{WorkersReady{generation}});
  } else if (phase_ == SupervisorPhase::kSucceeded && !port_for_report_) {
    Do(SendToMaster{WorkersSucceeded{generation, options_.hello.next_port, drain_asked_}});
  } else if (phase_ == SupervisorPhase::kJoining && !port_for_report_) {
    Do(SendToMaster{WorkersStopped{generation, options_.hello.next_port, fenced_}});
  }
}

void SupervisorMachine::ReportWithFreshPort() {
  port_for_report_ = true;
  Do(ReservePort{});
}

void SupervisorMachine::On(const FromMaster& event) {
  if (phase_ == SupervisorPhase::kFinishing) return;
  link_.Heard(now_);
  no_master_since_ = kNever;
  options_.hello.attached_before = true;
  if (!std::exchange(master_problem_, "").empty()) Say(NoteLevel::kInfo, "the master is back");
  std::visit([this](const auto& m) { Obey(m); }, event.message);
}

void SupervisorMachine::On(const MasterLost& event) {
  if (phase_ == SupervisorPhase::kFinishing) return;
  link_.Lost(now_, event.obstacle);
  if (!link_.is_blocked(now_, HasWorkers())) return MasterIsGone(event.detail);
  Say(NoteLevel::kError, "no master: " + event.detail + ": " + AdviceOn(event.obstacle));
  exit_code_ = kExitConfig;
  if (HasWorkers()) return BeginStop(StopCause::kRejected, SIGTERM);
  EndWith(kExitConfig);
}

std::string SupervisorMachine::AdviceOn(Obstacle obstacle) const {
  if (obstacle == Obstacle::kRefused) {
    return "correct that, or run the same version of muster on all nodes and as their master";
  }
  const bool is_forbidden = obstacle == Obstacle::kForbidden;
  return std::string("choose ") + (is_forbidden ? "a port above 1023" : "another port") + " (" +
         options_.endpoint_option + ")";
}

void SupervisorMachine::MasterIsGone(const std::string& problem) {
  const bool is_news = no_master_since_ == kNever;
  if (is_news) no_master_since_ = now_;
  master_problem_ = problem;
  Say(is_news ? NoteLevel::kWarning : NoteLevel::kDebug,
      is_news ? "lost the master (" + problem + "); trying again" +
                    (phase_ == SupervisorPhase::kRunning ? ", the workers go on" : "")
              : problem);
}

void SupervisorMachine::On(const RendezvousDone&) {
  if (phase_ == SupervisorPhase::kFinishing) EndWith(exit_code_);
}

void SupervisorMachine::Obey(const HeartbeatAck& message) { link_.Acknowledged(message.sequence); }

void SupervisorMachine::Obey(const Assignment& message) {
  if (message.generation <= assignment_.generation) return;
  if (HasWorkers()) {
    // The order to stop was lost with an earlier stream. The report of the stop brings the
    // assignment again.
    if (phase_ == SupervisorPhase::kRunning) BeginStop(StopCause::kOrdered, SIGTERM);
    return;
  }
  // This process was frozen, and the assignment may be of a generation that has been given up.
  if (now_ >= VouchedUntil()) return Greet();
  Start(message);
}

void SupervisorMachine::Obey(const StopWorkers& message) {
  if (message.generation != assignment_.generation) return;
  switch (phase_) {
    case SupervisorPhase::kRunning:
      Say(NoteLevel::kWarning, "stopping the workers of generation " +
                                   std::to_string(message.generation) + ": " + message.reason);
      BeginStop(StopCause::kOrdered, SIGTERM);
      break;
    case SupervisorPhase::kStopping:
      if (stop_cause_ == StopCause::kLeftovers) stop_cause_ = StopCause::kOrdered;
      break;
    case SupervisorPhase::kSucceeded:
      phase_ = SupervisorPhase::kJoining;
      if (options_.has_remote_master) still_waiting_at_ = now_ + kFirstWaitNote;
      [[fallthrough]];
    case SupervisorPhase::kJoining:
      if (!port_for_report_) {
        Do(SendToMaster{WorkersStopped{message.generation, options_.hello.next_port, fenced_}});
      }
      break;
    case SupervisorPhase::kFinishing:
    case SupervisorPhase::kEnded:
      break;
  }
}

void SupervisorMachine::Obey(const Wait& message) {
  if (message.reason == wait_reason_) return;
  wait_reason_ = message.reason;
  Say(NoteLevel::kInfo, message.reason);
  if (phase_ == SupervisorPhase::kJoining) still_waiting_at_ = now_ + kFirstWaitNote;
}

void SupervisorMachine::Obey(const Drain& message) {
  if (message.generation != assignment_.generation || phase_ != SupervisorPhase::kRunning) return;
  Say(NoteLevel::kInfo, "draining: " + message.reason);
  drain_asked_ = true;
  Do(TellWorkers{"DRAIN=1"});
}

void SupervisorMachine::Obey(const Verdict& message) {
  outcome_.verdict = message;
  if (HasWorkers()) {
    BeginStop(StopCause::kVerdict, SIGTERM);
  } else {
    Finish(message.exit_code, options_.hello.settings.exit_barrier_timeout);
  }
}

void SupervisorMachine::Obey(const Rejected& message) {
  Say(NoteLevel::kError, message.reason);
  exit_code_ = message.exit_code;
  if (HasWorkers()) {
    BeginStop(StopCause::kRejected, SIGTERM);
  } else {
    EndWith(message.exit_code);
  }
}

void SupervisorMachine::Obey(const Drained& message) {
  Say(NoteLevel::kInfo, message.reason);
  if (HasWorkers()) {
    BeginStop(StopCause::kDrained, SIGTERM);
  } else {
    Finish(0, options_.hello.settings.exit_barrier_timeout);
  }
}

Time SupervisorMachine::NoMasterDeadline() const {
  const JobSettings& settings = options_.hello.settings;
  if (!options_.has_remote_master) return kNever;
  switch (phase_) {
    case SupervisorPhase::kRunning: {
      // TERM and KILL must both fall within the time-out, so TERM comes a grace before its end.
      const Duration until_term = std::max(settings.master_loss_timeout - options_.stop_grace,
                                           settings.master_loss_timeout / 2);
      return link_.vouched_at() + until_term;
    }
    case SupervisorPhase::kJoining:
      return no_master_since_ == kNever ? kNever : no_master_since_ + settings.join_timeout;
    case SupervisorPhase::kSucceeded:
      return no_master_since_ == kNever ? kNever : no_master_since_ + settings.exit_barrier_timeout;
    case SupervisorPhase::kStopping:
    case SupervisorPhase::kFinishing:
    case SupervisorPhase::kEnded:
      return kNever;
  }
  return kNever;
}

Time SupervisorMachine::Fence() const { return HasWorkers() ? VouchedUntil() : kNever; }

Time SupervisorMachine::VouchedUntil() const {
  const JobSettings& settings = options_.hello.settings;
  const bool is_fenced = options_.has_remote_master && settings.fencing == Fencing::kStrict;
  return is_fenced ? link_.vouched_at() + settings.master_loss_timeout : kNever;
}

// The warden has killed the workers, whatever the master has said meanwhile: none of them failed.
void SupervisorMachine::FenceHasFallen() {
  if (phase_ != SupervisorPhase::kRunning) return;
  Say(NoteLevel::kError,
      "this process did not run for longer than --master-loss-timeout, and its workers were "
      "killed");
  fenced_ = true;
  BeginStop(StopCause::kOrdered, SIGTERM);
  if (phase_ == SupervisorPhase::kStopping) kill_at_ = now_;  // unless the warden was frozen, too
}

void SupervisorMachine::GiveUpWithoutMaster() {
  const std::string why =
      master_problem_.empty() ? options_.endpoint + " does not answer" : master_problem_;
  if (phase_ == SupervisorPhase::kRunning) {
    Say(NoteLevel::kError,
        "no master for too long (" + why + "), see --master-loss-timeout: stopping the workers");
    fenced_ = true;
    BeginStop(StopCause::kMasterLost, SIGTERM);
    kill_at_ = std::min(kill_at_, link_.vouched_at() + options_.hello.settings.master_loss_timeout);
    return;
  }
  const bool is_joining = phase_ == SupervisorPhase::kJoining && !link_.has_heard();
  Say(NoteLevel::kError, "no master: " + why +
                             (is_joining ? ": start the node that has this address, or correct " +
                                               options_.endpoint_option
                                         : ": start this node again when a master can be reached"));
  EndWith(kExitNoMaster);
}

}  // namespace muster
