#ifndef MUSTER_TESTS_FAKES_SUPERVISED_NODE_H_
#define MUSTER_TESTS_FAKES_SUPERVISED_NODE_H_

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "agent/supervisor_machine.h"

namespace muster {

// One line for tests and documents: "SignalTree TERM", "send WorkersStopped{3, port 4001}". A note
// is "note: TEXT".
std::string EffectText(const SupervisorEffect& effect);
// The texts of all but the notes, joined by ", "; "-" when there are none.
std::string EffectsText(const SupervisorEffects& effects);
// "joining", "running", ...
std::string PhaseText(SupervisorPhase phase);

// Two workers on a node of several: 5 s heartbeats, 15 s lease, 10 min to join, 1 h without a
// master, 5 min of exit barrier, 30 s between TERM and KILL, 0.5 s for orphans.
SupervisorOptions NodeOfMany();
// The same alone on its job: the master is in this process.
SupervisorOptions NodeAlone();

// A SupervisorMachine with the clock in the test's hand. Steps answer with EffectsText.
class SupervisedNode {
 public:
  explicit SupervisedNode(SupervisorOptions options = NodeOfMany()) : machine(std::move(options)) {}

  std::string Step(const SupervisorEvent& event);
  std::string Hear(MasterMessage message) { return Step(FromMaster{std::move(message)}); }
  std::string Exit(int local_rank, int code, bool tree_empty) {
    return Step(WorkerExited{local_rank, ExitStatus::Exited(code), tree_empty});
  }
  std::string Die(int local_rank, int signal, bool tree_empty) {
    return Step(WorkerExited{local_rank, ExitStatus::Signalled(signal), tree_empty});
  }
  std::string Signal(int signal) { return Step(SignalReceived{signal, 812, false}); }

  // Lets `span` pass and serves each deadline in it at its moment. The effects of them all.
  std::string Pass(Duration span);

  // Steps that lead somewhere, without their effects. Ports are 4000, 4001, ...
  SupervisedNode& Join();                             // Begin, first port, Hello
  SupervisedNode& RunGeneration(int64_t generation);  // ... and both workers started
  SupervisedNode& ReservedPort() { return Step(PortReserved{next_port++, ""}), *this; }

  // Texts of the notes since the last call.
  std::vector<std::string> TakeNotes() { return std::exchange(notes_, {}); }

  SupervisorMachine machine;
  Time now{std::chrono::hours(100)};
  int next_port = 4000;
  SupervisorEffects effects;  // of the last step

 private:
  std::vector<std::string> notes_;
};

// An Assignment for a node of two workers, the second of two nodes.
Assignment SecondNode(int64_t generation);

}  // namespace muster

#endif  // MUSTER_TESTS_FAKES_SUPERVISED_NODE_H_
