#ifndef MUSTER_TESTS_SIM_SIM_AGENT_H_
#define MUSTER_TESTS_SIM_SIM_AGENT_H_

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <variant>

#include "agent/supervisor_machine.h"
#include "tests/sim/sim_clock.h"
#include "tests/sim/sim_network.h"
#include "tests/sim/sim_warden.h"

namespace muster::sim {

// One life of an agent: the supervisor machine of the product in a simulated process.
class SimAgent : public AgentEnd {
 public:
  struct Options {
    int node = 0;
    SupervisorOptions machine;
    SimClock clock;
    std::function<int()> reserve_port;
    std::function<void()> on_open;  // a stream is about to be opened: the time to host a master
    // Calls back, perhaps at once, when nobody needs the master of this process, if it has one.
    std::function<void(std::function<void()>)> when_idle;
    std::function<void(int exit_code)> on_end;  // in order; not after Kill
    std::function<bool()> may_have_no_master;   // else ending for want of a master is a violation
  };

  SimAgent(SimWorld& world, SimNetwork& network, JobWork& work, const Scenario& scenario,
           Options options, std::function<void()> on_warden_gone);

  void Begin() { Deliver(SupervisorEvent(muster::Begin{})); }
  void Signal(int signal) { Deliver(SupervisorEvent(SignalReceived{signal, 812})); }
  void Freeze(Duration duration);
  void Thaw();
  void Kill();  // as SIGKILL: nothing is said any more, the warden notices

  bool is_alive() const { return is_alive_; }
  bool is_frozen() const { return is_frozen_; }
  const SupervisorMachine& machine() const { return machine_; }
  const Hello& hello() const { return options_.machine.hello; }
  SimWarden& warden() { return warden_; }

  void OnConnected(StreamId stream) override;
  void OnMessage(StreamId stream, const MasterMessage& message) override;
  void OnEnded(StreamId stream, bool unreachable) override;

 private:
  struct Incoming {
    StreamId stream = 0;  // 0: not from the network
    SupervisorEvent event;
  };

  Time LocalTime() const;
  void Deliver(SupervisorEvent event, StreamId stream = 0);
  void Drain(int most);
  void Handle(const Incoming& incoming);
  void Dispatch(SupervisorEvent event);
  void StepMachine(const SupervisorEvent& event);
  void CheckStep(const SupervisorEvent& event, int64_t generation_before);
  void CheckEnd(int exit_code);
  void ArmTimer();
  void TellFence();
  void TimerFired();

  void BeDone();

  void Perform(const ReservePort&);
  void Perform(const OpenStream&);
  void Perform(const SendToMaster& effect);
  void Perform(const FinishRendezvous&);
  void Perform(const StartWorkers& effect);
  void Perform(const SignalTree& effect);
  void Perform(const SignalWorkers& effect);
  void Perform(const Suspend&) {}  // nobody asks for it here
  void Perform(const InspectWorker&) {}
  void Perform(const KillWorker&) {}
  void Perform(const TellWorkers& effect) { warden_.TellWorkers(effect.text); }
  void Perform(const CloseGeneration&);
  void Perform(const Note&) {}
  void Perform(const End& effect);

  SimWorld& world_;
  SimNetwork& network_;
  Options options_;
  std::string name_;
  SupervisorMachine machine_;
  SimWarden warden_;
  bool is_alive_ = true;
  bool is_frozen_ = false;
  bool is_dispatching_ = false;
  bool is_connected_ = false;
  bool is_finishing_ = false;
  StreamId stream_ = 0;
  std::deque<Incoming> inbox_;          // while frozen, and until it has caught up
  std::deque<SupervisorEvent> events_;  // that effects brought
  Time armed_for_ = kNever;
  Time fence_ = kNever;  // what the warden knows
  uint64_t timer_ = 0;
  uint64_t freezes_ = 0;
  Time stepped_at_{};
  int steps_at_this_time_ = 0;
};

}  // namespace muster::sim

#endif  // MUSTER_TESTS_SIM_SIM_AGENT_H_
