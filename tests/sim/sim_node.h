#ifndef MUSTER_TESTS_SIM_SIM_NODE_H_
#define MUSTER_TESTS_SIM_SIM_NODE_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/sim/sim_agent.h"

namespace muster::sim {

// One host of the cluster and the agents that live on it, one after the other: a new one starts
// when nothing is left of the one before, as the node's lock demands.
class SimNode {
 public:
  struct Options {
    int index = 0;
    std::function<int()> reserve_port;
    std::function<void()> on_open;  // as of SimAgent
    std::function<void(std::function<void()>)> when_idle;
    std::function<bool()> may_have_no_master;
    std::function<bool()> is_job_over;          // nobody starts another agent then
    std::function<void(int exit_code)> on_end;  // in order
    std::function<void()> on_gone;              // the agent's process, in whatever way
  };

  SimNode(SimWorld& world, SimNetwork& network, JobWork& work, const Scenario& scenario,
          Options options);

  void Launch();
  void KillAgent();  // SIGKILL; the warden cleans up and may deliver the last will
  void KillWarden();

  SimAgent* agent();        // the one that is alive, or nullptr
  bool is_settled() const;  // nothing is alive and nothing will come
  const std::string& id() const { return id_; }

 private:
  // The one-shot program that a warden runs after its agent's death.
  class WillSender : public AgentEnd {
   public:
    explicit WillSender(SimNetwork& network) : network_(network) {}
    void Tell(int node, LastWill will);
    void OnConnected(StreamId) override {}
    void OnMessage(StreamId, const MasterMessage&) override {}
    void OnEnded(StreamId, bool) override {}

   private:
    SimNetwork& network_;
  };

  SupervisorOptions MachineOptions() const;
  void WardenIsGone();
  void MaybeComeBack();

  SimWorld& world_;
  SimNetwork& network_;
  JobWork& work_;
  const Scenario& scenario_;
  Options options_;
  std::string id_;
  WillSender will_sender_;
  std::vector<std::unique_ptr<SimAgent>> lives_;
  bool was_killed_ = false;
  bool is_launch_pending_ = false;
  bool wants_to_come_back_ = true;
};

}  // namespace muster::sim

#endif  // MUSTER_TESTS_SIM_SIM_NODE_H_
