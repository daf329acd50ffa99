#ifndef MUSTER_TESTS_SIM_FAULTS_H_
#define MUSTER_TESTS_SIM_FAULTS_H_

#include <memory>
#include <set>
#include <vector>

#include "tests/sim/job_work.h"
#include "tests/sim/scenario.h"
#include "tests/sim/sim_masters.h"
#include "tests/sim/sim_network.h"
#include "tests/sim/sim_node.h"

namespace muster::sim {

// Lets things go wrong, at random moments, until faults_end; then mends all that can be mended.
class Faults {
 public:
  // `only`: the numbers of the faults that strike; nullptr: all do.
  Faults(SimWorld& world, const Scenario& scenario, SimNetwork& network, SimMasters& master,
         JobWork& work, std::vector<std::unique_ptr<SimNode>>& nodes, const std::set<int>* only);

  void Begin();

  void KillMaster();
  // After an absence.
  void MasterIsBack() { CutOffAll(Duration::zero()); }
  // The node has not been heard lately, for a reason of its own or of the network.
  bool MayBeSilent(int node) const;
  // The master has not been able to see the node lately.
  bool IsCutOff(int node) const;
  // The numbers of those that have struck, from 1.
  const std::set<int>& struck() const { return struck_; }

 private:
  void Next();
  void Strike(FaultKind kind);
  FaultKind Draw();
  void SignalNode(int node);
  void Partition(int node);
  void FreezeAgent(int node);
  void FreezeMaster();
  void CutEtcd();
  void CutOff(int node, Duration duration);
  void Silence(int node, Duration duration);
  void CutOffAll(Duration duration);
  void Mend();

  SimWorld& world_;
  const Scenario& scenario_;
  SimNetwork& network_;
  SimMasters& master_;
  JobWork& work_;
  std::vector<std::unique_ptr<SimNode>>& nodes_;
  const std::set<int>* const only_;
  SimRandom random_;
  int number_ = 0;
  std::set<int> struck_;
  std::vector<Time> cut_off_until_;
  std::vector<Time> silent_until_;
};

}  // namespace muster::sim

#endif  // MUSTER_TESTS_SIM_FAULTS_H_
