#ifndef MUSTER_AGENT_SUPERVISOR_MACHINE_H_
#define MUSTER_AGENT_SUPERVISOR_MACHINE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/events.h"
#include "agent/master_link.h"
#include "agent/worker_table.h"
#include "base/time.h"
#include "rendezvous/messages.h"

namespace muster {

// What the machine is told at birth.
struct SupervisorOptions {
  Hello hello;                                      // the machine fills in next_port and running
  std::string endpoint = "the master";              // as messages call it
  std::string endpoint_option = "--rdzv-endpoint";  // that users correct when nobody is there
  Duration stop_grace{};
  Duration orphan_grace{};
  bool has_remote_master = false;  // false: single-node job, the master is in this process
  uint64_t seed = 0;               // of the reconnect jitter
};

enum class SupervisorPhase {
  kJoining,    // no workers; waiting for an assignment
  kRunning,    // workers are being started or run
  kStopping,   // workers are being stopped (or what succeeded workers left behind)
  kSucceeded,  // all workers exited 0; waiting for the verdict
  kFinishing,  // acknowledged or leaving; waiting until the rendezvous needs this node no more
  kEnded,
};

// What remains to be told when the node has ended.
struct Outcome {
  std::optional<Verdict> verdict;
  std::optional<WorkerFailed> failure;  // the first one of this node in its last generation
  int leaving_signal = 0;
  std::vector<Worker> workers;  // of the last generation, by local rank
  Assignment assignment;        // of the last generation
};

// One node: joins, starts the workers, watches them, stops them, and knows the exit code. Policy of
// restarts and membership is the master's (rendezvous/round_machine.h); this machine never starts a
// generation on its own.
//
// Pure: no clock, socket, process or log. Single-threaded. `now` never decreases from step to step.
// After an End effect nothing is alive that was started here, but for what hangs in the kernel (a
// note names it), and further events have no effect.
// State × event table: docs/SUPERVISION.md (checked by //tests/agent:supervisor_machine_test).
class SupervisorMachine {
 public:
  explicit SupervisorMachine(SupervisorOptions options);

  SupervisorEffects Step(Time now, const SupervisorEvent& event);

  // When Step must be called with TimeCame; kNever when only events can change something.
  Time NextDeadline() const;
  Time Fence() const;  // strict fencing: no worker lives longer, even if nobody asks the machine

  SupervisorPhase phase() const { return phase_; }
  const Assignment& assignment() const { return assignment_; }  // generation 0: none yet
  const WorkerTable& workers() const { return workers_; }
  const Outcome& outcome() const { return outcome_; }  // complete when phase() is kEnded

 private:
  void On(const Begin&);
  void On(const PortReserved& event);
  void On(const FromMaster& event);
  void On(const MasterLost& event);
  void On(const RendezvousDone&);
  void On(const WorkerSpawned& event);
  void On(const SpawnFailed& event);
  void On(const WorkerExited& event);
  void On(const TreeEmptied&);
  void On(const WorkerSaid& event);
  void On(const SignalReceived& event);
  void On(const SuspendAsked&);
  void On(const WardenLost&);
  void On(const TimeCame&);

  void Obey(const HeartbeatAck& message);
  void Obey(const Assignment& message);
  void Obey(const StopWorkers& message);
  void Obey(const Wait& message);
  void Obey(const Drain& message);
  void Obey(const Verdict& message);
  void Obey(const Rejected& message);
  void Obey(const Drained& message);
  void Greet();  // opens a stream: Hello and what the master must know beyond it
  void Start(const Assignment& assignment);
  void Fail(const WorkerFailed& failure);
  void BeginStop(StopCause cause, int signal);
  void WorkersAreGone();       // the stop is complete
  void Close();                // the generation, for its workers have come to their end
  void ReportWithFreshPort();  // WorkersStopped or WorkersSucceeded, once a port is reserved
  void Leave(const SignalReceived& event);
  void Finish(int exit_code, Duration patience);
  void EndWith(int exit_code);
  void MasterIsGone(const std::string& problem);
  std::string AdviceOn(Obstacle obstacle) const;
  void GiveUpWithoutMaster();
  void FenceHasFallen();
  void KillOrGiveUp();
  void KillStalled();
  Time StallDeadline() const;     // when the first worker will have been silent for too long
  void NodeHasEnded();            // an event of a worker may have been the last one
  Time VouchedUntil() const;      // strict fencing: no worker may run after it
  Time NoMasterDeadline() const;  // when this node stops trying to get along without a master
  std::optional<Progress> ProgressNow() const;
  bool HasWorkers() const;
  void Do(SupervisorEffect effect) { effects_.push_back(std::move(effect)); }
  void Say(NoteLevel level, std::string text) { Do(Note{level, std::move(text)}); }

  SupervisorOptions options_;
  MasterLink link_;
  WorkerTable workers_;
  SupervisorPhase phase_ = SupervisorPhase::kJoining;
  StopCause stop_cause_ = StopCause::kNone;
  Assignment assignment_;
  Outcome outcome_;
  std::optional<Leaving> leaving_;
  bool tree_empty_ = true;
  bool kill_sent_ = false;
  bool ready_told_ = false;
  bool drain_asked_ = false;
  bool fenced_ = false;           // as of WorkersStopped
  bool port_for_report_ = false;  // a WorkersStopped or WorkersSucceeded waits for its port
  int exit_code_ = 0;
  std::string wait_reason_;
  std::string master_problem_;  // the last reason why there is no stream
  Time kill_at_ = kNever;
  Time fence_ = kNever;         // as of the step before: what the warden goes by
  Time signalled_at_ = kNever;  // the first signal to the launcher
  Time finish_at_ = kNever;
  Time no_master_since_ = kNever;  // kNever: a master talks to us
  Time still_waiting_at_ = kNever;
  Time now_{};                 // of the step under way
  SupervisorEffects effects_;  // of the step under way
};

}  // namespace muster

#endif  // MUSTER_AGENT_SUPERVISOR_MACHINE_H_
