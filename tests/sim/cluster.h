#ifndef MUSTER_TESTS_SIM_CLUSTER_H_
#define MUSTER_TESTS_SIM_CLUSTER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/sim/faults.h"

namespace muster::sim {

// What a simulation came to.
struct Result {
  std::string violation;  // "" when every promise was kept
  std::string scenario;
  std::vector<std::string> trace;  // when asked for
  uint64_t actions = 0;
  int faults = 0;
  std::set<int> struck;  // numbers of the faults that were struck on purpose
  int64_t generations = 0;
  int exit_code = -1;        // of the verdict; -1: there was none
  Duration duration{};       // simulated
  double patience_used = 0;  // share of what it may take to end after the last fault
};

// One job on a simulated cluster: the machines of the product, everything else made up.
class Cluster {
 public:
  // `only`: as of Faults; outlives the cluster.
  Cluster(uint64_t seed, bool with_trace, const std::set<int>* only);

  Result Run();

 private:
  SimNode::Options NodeOptions(int index);
  void HearVerdict(const Verdict& verdict);
  void CheckDecision(const Reason& reason);
  bool MayHaveNoMaster() const;
  bool IsSettled() const;
  void CheckHang();
  void CheckEnd();

  Scenario scenario_;
  SimWorld world_;
  SimNetwork network_;
  SimMasters master_;
  JobWork work_;
  std::vector<std::unique_ptr<SimNode>> nodes_;
  Faults faults_;
  std::optional<Verdict> verdict_;
  std::vector<int> exit_codes_;
  int last_port_ = 20000;
};

// Runs the scenario of `seed`; with a trace when `with_trace`; with these faults alone unless
// `only` is nullptr.
Result Simulate(uint64_t seed, bool with_trace, const std::set<int>* only = nullptr);

}  // namespace muster::sim

#endif  // MUSTER_TESTS_SIM_CLUSTER_H_
