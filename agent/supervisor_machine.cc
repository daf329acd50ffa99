#include "agent/supervisor_machine.h"

#include <signal.h>

#include <algorithm>
#include <utility>

namespace muster {
namespace {

using std::chrono::seconds;

// sysexits.h and design: no master, and "cannot happen" (docs/EXIT_CODES.md).
constexpr int kExitNoMaster = 69;
constexpr int kExitBroken = 70;

// How long a process may stay after SIGKILL (uninterruptible sleep) before the agent goes without
// it.
constexpr Duration kKillPatience = seconds(10);
// A signal that comes twice within this time (a scheduler that signals every process and the leader
// too) counts once.
constexpr Duration kSameSignal = seconds(1);
// How long a leaving node waits for its farewell to be delivered.
constexpr Duration kFarewell = seconds(2);
constexpr Duration kFirstWaitNote = seconds(5);
constexpr Duration kNextWaitNote = seconds(10);

std::string RankText(const Assignment& assignment, int local_rank) {
  return "rank " + std::to_string(assignment.rank_base + local_rank) + " (local rank " +
         std::to_string(local_rank) + ")";
}

}  // namespace

SupervisorMachine::SupervisorMachine(SupervisorOptions options)
    : options_(std::move(options)),
      link_(options_.hello.settings, options_.has_remote_master, options_.seed) {}

SupervisorEffects SupervisorMachine::Step(Time now, const SupervisorEvent& event) {
  effects_.clear();
  if (phase_ == SupervisorPhase::kEnded) return {};
  now_ = now;
  std::visit([this](const auto& e) { On(e); }, event);
  return std::move(effects_);
}

bool SupervisorMachine::HasWorkers() const {
  return phase_ == SupervisorPhase::kRunning || phase_ == SupervisorPhase::kStopping;
}

// ── Joining
// ──────────────────────────────────────────────────────────────────────────────────────────────────────────

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
      Do(SendToMaster{WorkersSucceeded{assignment_.generation, event.port}});
    } else if (phase_ == SupervisorPhase::kJoining) {
      Do(SendToMaster{WorkersStopped{assignment_.generation, event.port}});
    }
  }
}

void SupervisorMachine::ReportWithFreshPort() {
  port_for_report_ = true;
  Do(ReservePort{});
}

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
  Do(SendToMaster{options_.hello});
  if (generation == 0) return;
  // What may have been said while nobody listened. The master takes each as it takes the first.
  if (outcome_.failure) Do(SendToMaster{*outcome_.failure});
  if (leaving_) Do(SendToMaster{*leaving_});
  if (phase_ == SupervisorPhase::kRunning) {
    if (workers_.AllStarted()) Do(SendToMaster{WorkersStarted{generation}});
    if (ready_told_) Do(SendToMaster{WorkersReady{generation}});
  } else if (phase_ == SupervisorPhase::kSucceeded && !port_for_report_) {
    Do(SendToMaster{WorkersSucceeded{generation, options_.hello.next_port}});
  } else if (phase_ == SupervisorPhase::kJoining && !port_for_report_) {
    Do(SendToMaster{WorkersStopped{generation, options_.hello.next_port}});
  }
}

// ── The master
// ───────────────────────────────────────────────────────────────────────────────────────────────────────

void SupervisorMachine::On(const FromMaster& event) {
  if (phase_ == SupervisorPhase::kFinishing) return;
  link_.Heard(now_);
  no_master_since_ = kNever;
  if (!std::exchange(master_problem_, "").empty()) Say(NoteLevel::kInfo, "the master is back");
  std::visit([this](const auto& m) { Obey(m); }, event.message);
}

void SupervisorMachine::On(const MasterLost& event) {
  if (phase_ == SupervisorPhase::kFinishing) return;
  link_.Lost(now_);
  MasterIsGone(event.detail);
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
      if (!port_for_report_) {
        Do(SendToMaster{WorkersStopped{message.generation, options_.hello.next_port}});
      }
      break;
    case SupervisorPhase::kJoining:
      if (!port_for_report_) {
        Do(SendToMaster{WorkersStopped{message.generation, options_.hello.next_port}});
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

// ── Workers
// ──────────────────────────────────────────────────────────────────────────────────────────────────────────

void SupervisorMachine::Start(const Assignment& assignment) {
  assignment_ = assignment;
  outcome_ = Outcome();
  workers_.Reset(options_.hello.slots);
  phase_ = SupervisorPhase::kRunning;
  ready_told_ = false;
  still_waiting_at_ = kNever;
  wait_reason_.clear();
  Say(NoteLevel::kInfo, "generation " + std::to_string(assignment.generation) + ": node " +
                            std::to_string(assignment.group_rank) + " of " +
                            std::to_string(assignment.group_world_size) + ", world size " +
                            std::to_string(assignment.world_size) + ", master " +
                            assignment.master_addr + " port " +
                            std::to_string(assignment.master_port));
  Do(StartWorkers{assignment});
}

void SupervisorMachine::On(const WorkerSpawned& event) {
  Worker* worker = workers_.Find(event.local_rank);
  if (worker == nullptr) return;
  worker->state = Worker::State::kRunning;
  worker->pid = event.pid;
  worker->started_at = now_;
  tree_empty_ = false;
  Say(NoteLevel::kDebug,
      RankText(assignment_, event.local_rank) + " is pid " + std::to_string(event.pid));
  if (phase_ == SupervisorPhase::kRunning && workers_.AllStarted()) {
    Do(SendToMaster{WorkersStarted{assignment_.generation}});
  }
}

void SupervisorMachine::On(const SpawnFailed& event) {
  Worker* worker = workers_.Find(event.local_rank);
  if (worker == nullptr) return;
  worker->state = Worker::State::kEnded;
  worker->status = ExitStatus::Exited(event.exit_code);
  worker->problem = event.problem;
  worker->started_at = worker->ended_at = now_;
  if (phase_ == SupervisorPhase::kRunning) {
    WorkerFailed failure;
    failure.local_rank = event.local_rank;
    failure.status = worker->status;
    failure.message = event.problem;
    // Only the want of a process may pass by itself.
    failure.can_restart = event.exit_code != 126 && event.exit_code != 127;
    Fail(failure);
  } else {
    NodeHasEnded();
  }
}

void SupervisorMachine::On(const WorkerExited& event) {
  Worker* worker = workers_.Find(event.local_rank);
  if (worker == nullptr) return;
  worker->state = Worker::State::kEnded;
  worker->status = event.status;
  worker->ended_at = now_;
  worker->stopped_by_us = phase_ == SupervisorPhase::kStopping;
  tree_empty_ = event.tree_empty;
  if (phase_ != SupervisorPhase::kRunning) {
    NodeHasEnded();
  } else if (!event.status.ok()) {
    WorkerFailed failure;
    failure.local_rank = event.local_rank;
    failure.pid = worker->pid;
    failure.status = event.status;
    failure.uptime = now_ - worker->started_at;
    failure.was_ready = worker->is_ready;
    failure.message = worker->problem;
    Fail(failure);
  } else if (workers_.AllEnded()) {
    BeginStop(StopCause::kLeftovers, SIGTERM);
  }
}

void SupervisorMachine::On(const TreeEmptied&) {
  tree_empty_ = true;
  NodeHasEnded();
}

void SupervisorMachine::NodeHasEnded() {
  if (phase_ != SupervisorPhase::kStopping || !workers_.AllEnded()) return;
  if (tree_empty_) {
    WorkersAreGone();
  } else if (!kill_sent_) {
    kill_at_ = std::min(kill_at_, now_ + options_.orphan_grace);
  }
}

void SupervisorMachine::On(const WorkerSaid& event) {
  Worker* worker = workers_.Find(event.local_rank);
  if (worker == nullptr) return;
  Say(NoteLevel::kDebug,
      RankText(assignment_, event.local_rank) + " says " + event.key + "=" + event.value);
  if (event.key == "ERROR") worker->problem = event.value;
  if (event.key != "READY" || event.value != "1") return;
  worker->is_ready = true;
  if (!ready_told_ && phase_ == SupervisorPhase::kRunning && workers_.AllReady()) {
    ready_told_ = true;
    Do(SendToMaster{WorkersReady{assignment_.generation}});
  }
}

void SupervisorMachine::Fail(const WorkerFailed& reported) {
  WorkerFailed failure = reported;
  failure.generation = assignment_.generation;
  failure.rank = assignment_.rank_base + failure.local_rank;
  outcome_.failure = failure;
  Say(NoteLevel::kInfo, RankText(assignment_, failure.local_rank) + " failed: " +
                            failure.status.ToString() + "; stopping the others of this node");
  Do(SendToMaster{failure});
  BeginStop(StopCause::kWorkerFailed, SIGTERM);
}

// ── Stopping
// ─────────────────────────────────────────────────────────────────────────────────────────────────────────

void SupervisorMachine::BeginStop(StopCause cause, int signal) {
  stop_cause_ = cause;
  if (phase_ == SupervisorPhase::kStopping) return;
  phase_ = SupervisorPhase::kStopping;
  kill_sent_ = false;
  kill_at_ = now_ + options_.stop_grace;
  if (!workers_.AllEnded() && cause != StopCause::kLeaving) {
    Do(TellWorkers{"ABORT=" + std::to_string(assignment_.generation)});
  }
  if (!workers_.AllEnded() || !tree_empty_) Do(SignalTree{signal});
  NodeHasEnded();
}

void SupervisorMachine::KillOrGiveUp() {
  if (!kill_sent_) {
    kill_sent_ = true;
    kill_at_ = now_ + kKillPatience;
    Do(SignalTree{SIGKILL});
    return;
  }
  constexpr const char* kHangs =
      " does not die of SIGKILL: it hangs in the kernel; giving up on it";
  for (int i = 0; i < workers_.size(); ++i) {
    const Worker& worker = workers_.workers()[i];
    if (worker.state == Worker::State::kEnded) continue;
    Say(NoteLevel::kError,
        RankText(assignment_, i) + ", pid " + std::to_string(worker.pid) + "," + kHangs);
  }
  if (workers_.AllEnded()) {
    Say(NoteLevel::kError, std::string("a process that the workers started") + kHangs);
  }
  Close();
  EndWith(kExitBroken);
}

void SupervisorMachine::Close() {
  kill_at_ = kNever;
  outcome_.workers = workers_.workers();
  outcome_.assignment = assignment_;
  Do(CloseGeneration{});
}

void SupervisorMachine::WorkersAreGone() {
  Close();
  switch (std::exchange(stop_cause_, StopCause::kNone)) {
    case StopCause::kLeftovers:
      phase_ = SupervisorPhase::kSucceeded;
      ReportWithFreshPort();
      break;
    case StopCause::kNone:
    case StopCause::kWorkerFailed:
    case StopCause::kOrdered:
      phase_ = SupervisorPhase::kJoining;
      if (options_.has_remote_master) still_waiting_at_ = now_ + kFirstWaitNote;
      ReportWithFreshPort();
      break;
    case StopCause::kLeaving:
      Do(SendToMaster{WorkersStopped{assignment_.generation, 0}});
      Finish(128 + outcome_.leaving_signal, kFarewell);
      break;
    case StopCause::kVerdict:
      // Whoever was told to go does not stay for the others.
      Finish(outcome_.verdict->exit_code,
             leaving_ ? kFarewell : options_.hello.settings.exit_barrier_timeout);
      break;
    case StopCause::kMasterLost:
      EndWith(kExitNoMaster);
      break;
    case StopCause::kRejected:
      EndWith(exit_code_);
      break;
  }
}

void SupervisorMachine::On(const WardenLost&) {
  // Past the verdict there is nothing left that it would be needed for.
  if (phase_ == SupervisorPhase::kFinishing) return;
  Say(NoteLevel::kError, "the warden process is gone and its workers with it; leaving the job");
  // Without it the master would take this node into the next generation, and charge the failures
  // of its peers.
  Do(SendToMaster{Leaving{assignment_.generation, LeaveCause::kSignal, "its warden is gone"}});
  if (HasWorkers()) {
    Close();
    Do(SendToMaster{WorkersStopped{assignment_.generation, 0}});
  }
  Finish(kExitBroken, kFarewell);
}

// ── Leaving and ending
// ───────────────────────────────────────────────────────────────────────────────────────────────

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

void SupervisorMachine::Leave(const SignalReceived& event) {
  const std::string who =
      event.sender_pid > 0 ? " from pid " + std::to_string(event.sender_pid) : "";
  const std::string what = SignalName(event.signal) + who;
  Say(NoteLevel::kWarning, what + ": stopping");
  if (phase_ == SupervisorPhase::kFinishing) return EndWith(exit_code_);
  outcome_.leaving_signal = event.signal;
  leaving_ = Leaving{assignment_.generation, LeaveCause::kSignal, what};
  Do(SendToMaster{*leaving_});
  if (phase_ == SupervisorPhase::kStopping) {
    if (!kill_sent_) Do(SignalTree{event.signal});
    const bool is_final = stop_cause_ == StopCause::kVerdict || stop_cause_ == StopCause::kRejected;
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

// ── Time
// ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

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

void SupervisorMachine::GiveUpWithoutMaster() {
  const std::string why = master_problem_.empty() ? "it does not answer" : master_problem_;
  if (phase_ == SupervisorPhase::kRunning) {
    Say(NoteLevel::kError, "no master for too long (" + why + "): stopping the workers");
    BeginStop(StopCause::kMasterLost, SIGTERM);
    kill_at_ = std::min(kill_at_, link_.vouched_at() + options_.hello.settings.master_loss_timeout);
    return;
  }
  Say(NoteLevel::kError, "no master: " + why);
  EndWith(kExitNoMaster);
}

void SupervisorMachine::On(const TimeCame&) {
  if (now_ >= finish_at_) return EndWith(exit_code_);
  // In this order: a stop for want of a master may begin with its grace over already.
  if (now_ >= NoMasterDeadline()) GiveUpWithoutMaster();
  if (now_ >= kill_at_) KillOrGiveUp();
  if (phase_ == SupervisorPhase::kEnded) return;
  switch (link_.Due(now_)) {
    case MasterLink::Action::kOpen:
      if (link_.is_silent(now_)) {
        const auto lease = std::chrono::duration_cast<seconds>(options_.hello.settings.lease());
        MasterIsGone("it has not answered for " + std::to_string(lease.count()) + " s");
      }
      Greet();
      break;
    case MasterLink::Action::kHeartbeat:
      Do(SendToMaster{Heartbeat{link_.NextSequence(now_)}});
      break;
    case MasterLink::Action::kNone:
      break;
  }
  if (now_ >= still_waiting_at_) {
    still_waiting_at_ = kNever;
    if (phase_ != SupervisorPhase::kJoining) return;
    still_waiting_at_ = now_ + kNextWaitNote;
    std::string reason = no_master_since_ == kNever ? wait_reason_ : master_problem_;
    if (reason.empty()) reason = "no word from the master yet";
    Say(NoteLevel::kWarning, "still waiting: " + reason);
  }
}

Time SupervisorMachine::NextDeadline() const {
  if (phase_ == SupervisorPhase::kEnded) return kNever;
  return std::min(
      {finish_at_, kill_at_, NoMasterDeadline(), link_.NextDeadline(), still_waiting_at_});
}

}  // namespace muster
