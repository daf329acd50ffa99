#ifndef MUSTER_TESTS_SIM_SIM_STORE_H_
#define MUSTER_TESTS_SIM_SIM_STORE_H_

#include <absl/status/status.h>

#include <functional>
#include <vector>

#include "tests/sim/record_store.h"
#include "tests/sim/sim_world.h"

namespace muster::sim {

// What outlives the master. A write takes its time and is made at some moment of it; the master
// hears of that later, or is killed before. What is under way when it is killed is made or lost.
class SimStore : public RecordStore {
 public:
  struct Options {
    bool exists = false;  // else masters have no store
    Duration slowest{};   // longest time of a write
    double fails = 0;     // probability that a write says so, until faults_end; it may be made
    // That the master is killed before it hears of a write, until faults_end.
    double is_the_end = 0;
  };

  SimStore(SimWorld& world, const Options& options) : world_(world), options_(options) {}

  // Called to kill the master.
  void OnTheEnd(std::function<void()> kill) { kill_ = std::move(kill); }

  bool exists() const override { return options_.exists; }
  MasterState Load() const override { return kept_.State(); }
  void Write(std::vector<RecordChange> changes, std::function<void(absl::Status)> answer) override;
  void Abandon() override;

 private:
  SimWorld& world_;
  const Options options_;
  std::function<void()> kill_;
  KeptRecords kept_;
  std::vector<RecordChange> under_way_;  // not made yet
  uint64_t lives_ = 0;                   // of masters
};

}  // namespace muster::sim

#endif  // MUSTER_TESTS_SIM_SIM_STORE_H_
