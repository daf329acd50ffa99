#ifndef MUSTER_TESTS_SIM_SIM_WARDEN_H_
#define MUSTER_TESTS_SIM_SIM_WARDEN_H_

#include <functional>
#include <map>
#include <string>

#include "agent/events.h"
#include "tests/sim/job_work.h"
#include "tests/sim/scenario.h"
#include "tests/sim/sim_world.h"

namespace muster::sim {

// A warden and the processes below it: workers of one node and what they leave behind. Serves
// requests in order, answers in order, and outlives its agent until nothing is left.
class SimWarden {
 public:
  // `answer` brings what the agent hears from it; `on_gone` is called once, after the last process
  // of an agent that is gone has ended; a warden that was killed brings WardenLost.
  SimWarden(SimWorld& world, JobWork& work, const Scenario& scenario, int node,
            std::function<void(SupervisorEvent)> answer, std::function<void()> on_gone);

  void Spawn(const Assignment& assignment, int local_rank);
  void Signal(int signal, bool whole_tree);
  void TellWorkers(const std::string& text);
  // Nothing of the tree lives longer, whatever becomes of the agent; kNever: as long as it likes.
  void SetFence(Time fence);
  void AgentIsGone();
  void Die();  // killed; the kernel takes the workers along

  int alive() const { return static_cast<int>(processes_.size()); }
  bool is_gone() const { return is_gone_; }

 private:
  struct Process {
    bool is_worker = false;
    Assignment assignment;
    int local_rank = 0;
    bool ignores_term = false;
    bool is_dying = false;  // of TERM, with success, or for want of a peer: decided, not yet done
    bool is_killed = false;
  };

  int rank(const Process& process) const {
    return process.assignment.rank_base + process.local_rank;
  }
  void Serve(Duration delay, std::function<void()> request);
  void Answer(SupervisorEvent event);
  void Say(int local_rank, int id, Duration delay, std::string key, std::string value);
  void Fork(const Assignment& assignment, int local_rank);
  void DrawLife(int id);
  void EndLater(int id, Duration delay, ExitStatus status);
  void End(int id, ExitStatus status);
  void Terminate(int signal, bool whole_tree);
  void Kill();
  void FenceFalls();
  void LeaveChild();
  void MaybeGone();

  SimWorld& world_;
  JobWork& work_;
  const Scenario& scenario_;
  int node_;
  std::function<void(SupervisorEvent)> answer_;
  std::function<void()> on_gone_;
  std::map<int, Process> processes_;
  int last_id_ = 0;
  Time busy_until_{};
  Time answered_until_{};
  Time fence_ = kNever;
  bool is_killing_ = false;  // what appears now is killed, too
  bool agent_is_gone_ = false;
  bool is_gone_ = false;
};

}  // namespace muster::sim

#endif  // MUSTER_TESTS_SIM_SIM_WARDEN_H_
