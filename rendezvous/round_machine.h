#ifndef MUSTER_RENDEZVOUS_ROUND_MACHINE_H_
#define MUSTER_RENDEZVOUS_ROUND_MACHINE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "rendezvous/events.h"
#include "rendezvous/incident.h"
#include "rendezvous/node.h"
#include "rendezvous/restart_backoff.h"

namespace muster {

// One job at the master: who is a member, which ranks they hold, when a generation begins and ends,
// and how the job ends.
//
// Pure: no clock, socket, thread or log. Single-threaded. `now` never decreases from step to step.
// State × event table and protocol: docs/RENDEZVOUS.md (checked by
// //tests/rendezvous:round_table_test).
class RoundMachine {
 public:
  // `instance` numbers the job among jobs with the same id at this master. `seed` feeds the jitter
  // of the restart back-off.
  RoundMachine(std::string job_id, uint64_t instance, uint64_t seed);

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
  // The places of the current generation by group rank; empty while none is running, stopping or
  // being recovered.
  const std::vector<Seat>& seats() const { return seats_; }
  const std::optional<JobSettings>& settings() const { return settings_; }  // of the first Hello
  const std::optional<Verdict>& verdict() const { return verdict_; }
  const Reason& reason() const { return reason_; }  // why the job is where it is

  // True when the verdict is known and every node has acknowledged it or is lost: the job can be
  // forgotten.
  bool finished() const;

  // True for an agent that this job knows or that runs workers of it. After the verdict its Hello
  // is answered with the verdict; the Hello of any other agent begins a new instance of the job,
  // which is another machine.
  bool WasPartOf(const Hello& hello) const;

 private:
  // Why no generation begins, and until when at the latest.
  struct Hold {
    Reason reason;
    Time until = kNever;
  };

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
  void AnswerStale(Node& node, int64_t generation, bool may_run);

  // Who is let in and what it brings along (round_admission.cc).
  void OnHello(const MessageArrived& event, const Hello& hello);
  std::optional<Rejected> Refusal(const Hello& hello) const;
  std::optional<Rejected> RankRefusal(const Hello& hello) const;
  void Refuse(StreamId stream, const Rejected& refusal);
  Node& Admit(const MessageArrived& event, const Hello& hello);
  void Renew(Node& node, const Hello& hello);
  bool IsBinding() const;
  void Reconcile(Node& node);
  void ReconcileSeat(Node& node, Seat& seat, WorkersPhase reported);
  bool CanRecover(const Running& running) const;
  void Recover(const Assignment& place);
  void ClaimSeat(Node& node);
  void GiveUpFixedSeat(Node& node);

  // How a generation begins (round_formation.cc).
  void AdvanceForming();
  void AdvanceRecovering();
  void AdvanceRunning();
  std::optional<Hold> FormationHold() const;
  std::vector<Node*> ChooseMembers();
  void Form();
  void SetMaster(const std::vector<Node*>& members);
  void UpdateWaits();
  std::optional<Hold> HoldOf(const Node& node, const std::optional<Hold>& general) const;
  int CandidateCount() const;

  // How a generation and the job end (round_ending.cc).
  void EndGeneration(const Reason& cause);
  void AdvanceStopping();
  void FinishIncident();
  void Lose(Node& node, const Reason& cause);
  void LoseSeat(Seat& seat, Time last_heard, const Reason& cause);
  void CloseIfAbandoned();
  void CloseSucceeded();
  void CloseFailed(const Failure& failure, ReasonCode code);
  void Close(Verdict verdict, const Reason& reason);
  void MarkStopping(Seat& seat);
  void ExpectSuccessor();
  Duration StrictFence() const;
  Time FenceOf(const Seat& seat, Time last_heard) const;
  Hold StoppingHold() const;

  // Small things (round_machine.cc).
  void Advance();
  bool IsUnderWay() const;  // a generation is running or being recovered
  Node* NodeOf(StreamId stream);
  Seat* SeatOf(const Node& node);
  void SetPhase(Seat& seat, WorkersPhase phase);
  void Order(Node& node, int64_t generation, const Reason& reason);
  void Send(StreamId stream, MasterMessage message);
  void CloseStream(StreamId stream);
  void Log(const Reason& reason);
  void SetReason(const Reason& reason);
  void ForgetLostNodes();

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
  RestartBackoff backoff_;
  uint64_t arrivals_ = 0;
  bool last_call_due_ = true;  // someone may be on the way: first formation, or a member is gone
  int last_size_ = 0;          // nodes in the generation before; 0: none
  std::optional<Leaving> last_leave_;
  Time formed_at_{};
  Time join_deadline_ = kNever;
  Time last_call_deadline_ = kNever;
  Time backoff_until_ = Time::min();
  Duration backoff_wait_{};
  Time recovery_deadline_ = kNever;
  Time exit_barrier_deadline_ = kNever;
  Time now_{};            // of the step in progress
  RoundEffects effects_;  // of the step in progress
};

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_ROUND_MACHINE_H_
