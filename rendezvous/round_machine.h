#ifndef MUSTER_RENDEZVOUS_ROUND_MACHINE_H_
#define MUSTER_RENDEZVOUS_ROUND_MACHINE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "rendezvous/events.h"
#include "rendezvous/job_record.h"
#include "rendezvous/round_state.h"

namespace muster {

// One job at the master: who is a member, which ranks they hold, when a generation begins and ends,
// and how the job ends. Pure and single-threaded; `now` never decreases from step to step.
// Protocol and state × event table: docs/RENDEZVOUS.md (//tests/rendezvous:round_table_test).
class RoundMachine : public RoundState {
 public:
  // `instance` numbers the job among jobs with the same id at this master; its generations count on
  // from those of the instance before, of which `last_generation` was the last. `seed` feeds the
  // jitter of the restart back-off.
  RoundMachine(std::string job_id, uint64_t instance, uint64_t seed, int64_t last_generation = 0);
  // Goes on with what another machine's Record() said: waits for the members that it knows.
  RoundMachine(const JobRecord& record, uint64_t seed, Time now);

  // The effects are complete: the shell adds nothing and drops nothing.
  RoundEffects Step(Time now, const RoundEvent& event);

  // When Step must be called with DeadlinePassed; kNever when only events can change something.
  Time NextDeadline() const;

  // What outlives the master (round_record.cc); nothing before the first generation or the end.
  std::optional<JobRecord> Record() const;

  // What the job as a whole waits for, and until when; nothing while it waits for nothing.
  std::optional<Hold> CurrentHold(Time now) const;

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
  void On(const DrainRequested& event);
  void On(const LeftAlone& event);
  void Handle(Node& node, const Heartbeat& message);
  void Handle(Node& node, const WorkersStarted& message);
  void Handle(Node& node, const WorkersReady& message);
  void Handle(Node& node, const WorkersStopped& message);
  void Handle(Node& node, const WorkerFailed& message);
  void Handle(Node& node, const WorkersSucceeded& message);
  void Handle(Node& node, const Leaving& message);
  void Handle(Node& node, const CommitPoint& message);
  void OnLastWill(StreamId stream, const LastWill& will);
  const Seat* CurrentSeat(Node& node, int64_t generation, bool may_run);
  bool StaleHaveStopped(Node& node, int64_t generation);
  void AnswerStale(Node& node, int64_t generation, bool may_run);

  // Who is let in and what it brings along (round_admission.cc).
  void OnHello(const MessageArrived& event, const Hello& hello);
  Node& Admit(const MessageArrived& event, const Hello& hello);
  void Renew(Node& node, const Hello& hello);
  bool IsBinding() const;
  void Reconcile(Node& node);
  void ReconcileSeat(Node& node, const Running& reported);
  bool CanRecover(const Running& running) const;
  void Recover(const Assignment& place);
  void ClaimSeat(Node& node);
  void GiveUpReplacedSeat(Node& node);

  // How a generation begins (round_formation.cc).
  void AdvanceForming();
  void AdvanceRecovering();
  void AdvanceRunning();
  int Available() const;
  bool MayGrow() const;
  void TakeIn();
  std::vector<Node*> ChooseMembers();
  void Form();
  void SetMaster(const std::vector<Node*>& members, std::vector<Seat>* seats);

  // What those who do not run wait for (round_waits.cc).
  WaitKind WaitKindOf(const Node& node) const;
  Hold HoldOf(WaitKind kind) const;
  std::optional<Hold> FormingHold(Time now) const;
  Hold PlaceHold() const;
  std::string MissingNodes() const;
  std::string MissingMembers() const;

  // Who is taken out at a commit point (round_drain.cc).
  void TellDrain();
  void SendDrain(const Node& node);
  Reason DrainReason() const;
  void CutDrain();
  bool FinishDrain(const std::optional<Failure>& failure, bool all_succeeded);
  void LetGo(Node& node, const std::string& who);

  // How a generation and the job end (round_ending.cc).
  void TakeFailure(const Node& node, const WorkerFailed& failure);
  void TakeStop(const Node& node, bool fenced);
  void EndGeneration(const Reason& cause);
  void AdvanceStopping();
  void FinishIncident();
  void Lose(Node& node, const Reason& cause);
  void LoseSeat(size_t rank, Time last_heard, const Reason& cause);
  Time FenceOf(const Seat& seat, Time last_heard) const;
  void CloseIfAbandoned();

  void CloseStopped();
  void CloseFailed(const Failure& failure, ReasonCode code, const std::string& drainer = {});
  void Close(Verdict verdict, const Reason& reason);
  void MarkStopping(size_t rank);
  void MarkSucceeded(size_t rank, bool drained);

  // What outlives the master (round_record.cc).
  void RecordIncident(JobRecord* record) const;
  void RestoreIncident(const JobRecord& record, Time now);

  // Deadlines and streams (round_machine.cc).
  void Advance();
  void Miss(Node& node);
  void LoseSilent();
  void LoseStuck();
};

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_ROUND_MACHINE_H_
