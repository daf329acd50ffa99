#include <signal.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <utility>

#include "agent/supervisor_limits.h"
#include "agent/supervisor_machine.h"

// The workers of a generation, from their start until nothing of them is left.

namespace muster {
namespace {

// Nothing where it is not a number alone.
std::optional<int64_t> StepOf(const std::string& text) {
  int64_t step = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, step);
  if (error != std::errc() || rest != end || step < 0) return std::nullopt;
  return step;
}

std::string RankText(const Assignment& assignment, int local_rank) {
  return "rank " + std::to_string(assignment.rank_base + local_rank) + " (local rank " +
         std::to_string(local_rank) + ")";
}

}  // namespace

void SupervisorMachine::Start(const Assignment& assignment) {
  assignment_ = assignment;
  outcome_ = Outcome();
  workers_.Reset(options_.hello.slots);
  phase_ = SupervisorPhase::kRunning;
  ready_told_ = drain_asked_ = fenced_ = false;
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
    failure.evidence = event.evidence;
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
  if (event.key == "STEP") {
    worker->last_step = event.value.substr(0, kStepBytesMax);
    if (const auto step = StepOf(event.value)) workers_.Reached(worker, *step, now_);
  }
  const bool is_commit = event.key == "CHECKPOINT" && phase_ == SupervisorPhase::kRunning;
  if (is_commit && options_.hello.settings.join_policy == JoinPolicy::kCheckpoint) {
    Do(SendToMaster{CommitPoint{assignment_.generation}});
  }
  if (event.key == "STEP" || worker->last_report != kNever) worker->last_report = now_;
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
  const JobSettings& settings = options_.hello.settings;
  if (settings.fatal_exit_codes.Contains(failure.status.ShellCode())) failure.can_restart = false;
  outcome_.failure = failure;
  Say(NoteLevel::kInfo, RankText(assignment_, failure.local_rank) + " failed: " +
                            failure.status.ToString() + "; stopping the others of this node");
  Do(SendToMaster{failure});
  BeginStop(StopCause::kWorkerFailed, SIGTERM);
}

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
  if (now_ - kill_at_ > kOverslept) {
    // This process was frozen: the news that all have ended may be waiting to be heard.
    kill_at_ = now_ + kKillPatience;
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

Time SupervisorMachine::StallDeadline() const {
  const Duration limit = options_.hello.settings.stall_timeout;
  Time first = kNever;
  if (limit == Duration::zero() || phase_ != SupervisorPhase::kRunning) return first;
  for (const Worker& worker : workers_.workers()) {
    const bool counts = worker.state == Worker::State::kRunning && worker.last_report != kNever;
    if (counts && !worker.stalled) first = std::min(first, worker.last_report + limit);
  }
  return first;
}

void SupervisorMachine::KillStalled() {
  const Duration limit = options_.hello.settings.stall_timeout;
  const bool was_frozen = now_ > StallDeadline() + kFrozen;
  for (int i = 0; i < workers_.size(); ++i) {
    Worker& worker = *workers_.Find(i);
    if (worker.state != Worker::State::kRunning || worker.stalled) continue;
    if (worker.last_report == kNever || now_ < worker.last_report + limit) continue;
    if (was_frozen) {
      worker.last_report = now_;
      continue;
    }
    worker.stalled = true;
    worker.problem = "stalled: it reported STEP=" + worker.last_step + " and then nothing for " +
                     DurationText(limit);
    Say(NoteLevel::kError, RankText(assignment_, i) + ", pid " + std::to_string(worker.pid) + ", " +
                               worker.problem + "; killing it");
    Do(InspectWorker{i, worker.pid});
    Do(KillWorker{i});
  }
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
    case StopCause::kDrained:
      // Whoever was told to go does not stay for the others.
      Finish(outcome_.verdict ? outcome_.verdict->exit_code : 0,
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

}  // namespace muster
