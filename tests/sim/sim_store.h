#ifndef MUSTER_TESTS_SIM_SIM_STORE_H_
#define MUSTER_TESTS_SIM_SIM_STORE_H_

#include <absl/status/status.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "rendezvous/job_record.h"
#include "tests/sim/sim_world.h"

namespace muster::sim {

// What outlives the master. A write takes its time and is made at some moment of it; the master
// hears of that later, or is killed before. What is under way when it is killed is made or lost.
class SimStore {
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

  MasterState Load() const;
  void Write(std::vector<RecordChange> changes, std::function<void(absl::Status)> answer);
  // The master is dead: it hears no answer.
  void Abandon();

  const Options& options() const { return options_; }

 private:
  void Make(const std::vector<RecordChange>& changes);

  SimWorld& world_;
  const Options options_;
  std::function<void()> kill_;
  std::map<std::string, JobRecord> records_;
  MasterRecord master_;
  std::vector<RecordChange> under_way_;  // not made yet
  uint64_t lives_ = 0;                   // of masters
};

}  // namespace muster::sim

#endif  // MUSTER_TESTS_SIM_SIM_STORE_H_
