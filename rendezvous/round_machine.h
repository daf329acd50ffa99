#ifndef MUSTER_RENDEZVOUS_ROUND_MACHINE_H_
#define MUSTER_RENDEZVOUS_ROUND_MACHINE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "rendezvous/events.h"
#include "rendezvous/formation_gate.h"
#include "rendezvous/incident.h"
#include "rendezvous/job_record.h"
#include "rendezvous/node.h"

namespace muster {

// One job at the master: who is a member, which ranks they hold, when a generation begins and ends,
// and how the job ends. Pure and single-threaded; `now` never decreases from step to step.
// Protocol and state × event table: docs/RENDEZVOUS.md (//tests/rendezvous:round_table_test).
class RoundMachine {
 public:
  // `instance` numbers jobs of this id at this master; `seed` feeds the back-off's jitter.
  RoundMachine(std::string job_id, uint64_t instance, uint64_t seed);
  // Goes on with what another machine's Record() said: waits for the members that it knows.
  RoundMachine(const JobRecord& record, uint64_t seed, Time now);
  // What outlives the master (round_record.cc); nothing before the first generation or the end.
  std::optional<JobRecord> Record() const;

  // The effects are complete: the shell adds nothing and drops nothing.
  RoundEffects Step(Time now, const RoundEvent& event);

  // When Step must be called with DeadlinePassed; kNever when only events can change something.
  Time NextDeadline() const;

  RoundPhase phase() const { return phase_; }
  int64_t generation() const { return generation_; }
  int restarts_used() const { return restarts_used_; }
  const std::string& job_id() const { return job_id_; }
  uint64_t instance() const { return instance_; }
  const std::map<std::string, Node>& nodes() const { return nodes_; }
  // By group rank; empty while no generation is running, stopping or being recovered.
  const std::vector<Seat>& seats() const { return seats_; }
  const std::optional<JobSettings>& settings() const { return settings_; }  // of the first Hello
  const std::optional<Verdict>& verdict() const { return verdict_; }
  const Reason& reason() const { return reason_; }  // why the job is where it is
  // What the job as a whole waits for, and until when; nothing while it waits for nothing.
  std::optional<Hold> CurrentHold(Time now) const;

  // The verdict is known and each node has acknowledged it or is lost: it can be forgotten.
  bool finished() const;

  // True for an agent that this job knows or that runs workers of it. The Hello of any other agent
  // to a closed job begins a new instance of it: another machine.
  bool WasPartOf(const Hello& hello) const;

 private:
  // Events (round_machine.cc) and messages of a node that has said Hello (round_messages.cc).
  void On(const MessageArrived& event);
  void On(const StreamBroken& event);
  void On(const DeadlinePassed& event);
  void On(const WokeUp& event);
  void On(const StopRequested& event);
  void Handle(Node& node, const Heartbeat& message);
  void Handle(Node& node, const WorkersStarted& message);
  void Handle(Node& node, const WorkersReady& message);
  void Handle(Node& node, const WorkersStopped& message);
  void Handle(Node& node, const WorkerFailed& message);
  void Handle(Node& node, const WorkersSucceeded& message);
  void Handle(Node& node, const Leaving& message);
  void OnLastWill(StreamId stream, const LastWill& will);
  Seat* CurrentSeat(Node& node, int64_t generation, bool may_run);
  bool StaleHaveStopped(Node& node, int64_t generation);
  void AnswerStale(Node& node, int64_t generation, bool may_run);

  // Who is let in and what it brings along (round_admission.cc).
  void OnHello(const MessageArrived& event, const Hello& hello);
  Node& Admit(const MessageArrived& event, const Hello& hello);
  void Renew(Node& node, const Hello& hello);
  bool IsBinding() const;
  void Reconcile(Node& node);
  void ReconcileSeat(Node& node, Seat& seat, const Running& reported);
  bool CanRecover(const Running& running) const;
  void Recover(const Assignment& place);
  void ClaimSeat(Node& node);
  void GiveUpReplacedSeats();

  // How a generation begins (round_formation.cc).
  void AdvanceForming();
  void AdvanceRecovering();
  void AdvanceRunning();
  std::vector<Node*> ChooseMembers();
  void Form();
  void SetMaster(const std::vector<Node*>& members);
  void UpdateWaits();
  std::optional<Hold> HoldOf(const Node& node, const std::optional<Hold>& general) const;

  // How a generation and the job end (round_ending.cc).
  void TakeFailure(const Node& node, Seat& seat, const WorkerFailed& failure);
  void EndGeneration(const Reason& cause);
  void AdvanceStopping();
  void FinishIncident();
  void Lose(Node& node, const Reason& cause);
  void LoseSeat(Seat& seat, Time last_heard, const Reason& cause);
  void CloseIfAbandoned();
  void CloseFailed(const Failure& failure, ReasonCode code);
  void Close(Verdict verdict, const Reason& reason);
  void MarkStopping(Seat& seat);
  Hold StoppingHold(Time now) const;

  // Small things (round_machine.cc).
  void Advance();
  void Changed();           // the record
  bool IsUnderWay() const;  // a generation is running or being recovered
  Node* NodeOf(StreamId stream);
  Seat* SeatOf(const Node& node);
  void SetPhase(Seat& seat, WorkersPhase phase);
  void Order(Node& node, int64_t generation, const Reason& reason);
  void Send(StreamId stream, MasterMessage message);
  void CloseStream(StreamId stream);
  void Log(const Reason& reason);
  void SetReason(const Reason& reason);

  std::string job_id_;
  uint64_t instance_;
  RoundPhase phase_ = RoundPhase::kForming;
  int64_t generation_ = 0;
  int64_t highest_heard_ = 0;  // generation numbers that agents brought along
  int restarts_used_ = 0;
  std::optional<JobSettings> settings_;
  std::map<std::string, Node> nodes_;
  std::map<StreamId, std::string> streams_;  // to node ids
  std::vector<Seat> seats_;
  std::optional<Verdict> verdict_;
  Reason reason_;
  Incident incident_;
  FormationGate gate_;
  uint64_t arrivals_ = 0;
  std::optional<Leaving> last_leave_;
  Time formed_at_{};
  Time recovery_deadline_ = kNever;
  Time exit_barrier_deadline_ = kNever;
  Time now_{};            // of the step in progress
  RoundEffects effects_;  // of the step in progress
};

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_ROUND_MACHINE_H_
