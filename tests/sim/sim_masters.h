#ifndef MUSTER_TESTS_SIM_SIM_MASTERS_H_
#define MUSTER_TESTS_SIM_SIM_MASTERS_H_

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "tests/sim/scenario.h"
#include "tests/sim/sim_candidate.h"
#include "tests/sim/sim_store.h"

namespace muster::sim {

// The masters of a cluster: one, with a store or without; or several, of whom one is elected.
class SimMasters {
 public:
  struct Options {
    std::function<void(const Verdict&)> on_verdict;  // the first time that each is sent
    std::function<void(const Reason&)> on_decision;
    // Another one serves, or the one that did serves no more; only where they are elected.
    std::function<void()> on_change;
  };

  SimMasters(SimWorld& world, SimNetwork& network, const Scenario& scenario, Options options);

  // Called to kill the master, where there is one.
  void OnTheEnd(std::function<void()> kill) { store_.OnTheEnd(std::move(kill)); }

  void Start();  // all that are dead
  void Kill();   // the one, or one of several
  void Freeze(Duration duration);
  void Thaw();
  void CutFromEtcd(Duration duration);
  void Heal();

  // An operator asks the one that serves.
  void Drain(const DrainRequested& request);
  // Once, when no stream is open and no job needs the master; perhaps at once.
  void TellWhenIdle(std::function<void()> callback) { alone_->TellWhenIdle(std::move(callback)); }

  bool is_alive() const;  // one at least
  // An agent that looks for a master finds one that listens.
  bool is_serving() const;

 private:
  void CheckVerdict(uint64_t instance, const Verdict& verdict);
  int Find();
  SimCandidate& AnyCandidate();

  SimWorld& world_;
  const Options options_;
  SimStore store_;
  std::unique_ptr<SimMaster> alone_;
  std::unique_ptr<SimEtcd> etcd_;
  std::vector<std::unique_ptr<SimCandidate>> candidates_;
  // By instance; of one life where there is no store.
  std::map<uint64_t, Verdict> verdicts_;
};

}  // namespace muster::sim

#endif  // MUSTER_TESTS_SIM_SIM_MASTERS_H_
