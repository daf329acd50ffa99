#ifndef MUSTER_TESTS_SIM_SIM_CANDIDATE_H_
#define MUSTER_TESTS_SIM_SIM_CANDIDATE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>

#include "rendezvous/election_machine.h"
#include "tests/sim/sim_clock.h"
#include "tests/sim/sim_etcd.h"
#include "tests/sim/sim_master.h"

namespace muster::sim {

// A process that may be the master: the election machine of the product, and a master as long as it
// leads, as rendezvous/elected_master.cc has them. Each has a thread of its own: after a freeze the
// master may go on before the election has noticed.
class SimCandidate {
 public:
  struct Options {
    int number = 0;
    SimClock clock;
    SimMaster::Options master;
    std::function<void()> on_change = {};  // it begins to serve, or ceases to
  };

  SimCandidate(SimWorld& world, SimNetwork& network, SimEtcd& etcd, Options options);

  void Start();
  void Kill();
  void Freeze(Duration duration);
  void Thaw();

  int number() const { return options_.number; }
  bool is_alive() const { return machine_.has_value(); }
  SimMaster& master() { return master_; }
  const SimMaster& master() const { return master_; }

 private:
  // The records in etcd, with the right to write that one election gives.
  class Claim : public RecordStore {
   public:
    Claim(SimEtcd& etcd, int number) : etcd_(etcd), number_(number) {}
    void Begin(int64_t revision, MasterState state);

    bool exists() const override { return true; }
    MasterState Load() const override { return state_; }
    void Write(std::vector<RecordChange> changes,
               std::function<void(absl::Status)> answer) override;
    void Abandon() override { ++terms_; }

   private:
    SimEtcd& etcd_;
    const int number_;
    int64_t revision_ = 0;
    MasterState state_;
    uint64_t terms_ = 0;
  };

  SimMaster::Options MasterOptions();
  void Deliver(std::function<void()> what);
  void StepSoon(election::Event event);
  void Step(const election::Event& event);
  void Perform(const election::Effect& effect);
  void Serve(int64_t claim);
  void EndTerm();
  void ArmTimer();

  SimWorld& world_;
  SimEtcd& etcd_;
  const Options options_;
  const std::string name_;
  Claim claim_;
  SimMaster master_;
  std::optional<ElectionMachine> machine_;  // while the process is alive
  bool is_frozen_ = false;
  std::deque<std::function<void()>> inbox_;  // while frozen
  Time armed_for_ = kNever;
  uint64_t timer_ = 0;
  uint64_t terms_ = 0;
  uint64_t lives_ = 0;
  uint64_t freezes_ = 0;
};

}  // namespace muster::sim

#endif  // MUSTER_TESTS_SIM_SIM_CANDIDATE_H_
