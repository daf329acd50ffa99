#ifndef MUSTER_TESTS_SIM_SIM_MASTER_H_
#define MUSTER_TESTS_SIM_SIM_MASTER_H_

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "rendezvous/record_keeper.h"
#include "tests/sim/record_store.h"
#include "tests/sim/sim_network.h"

namespace muster::sim {

// The master's process: the job registry and the record keeper of the product under a loop that
// treats lateness as rendezvous/master_loop.cc does. Checked after every step.
class SimMaster : public MasterEnd {
 public:
  struct Options {
    std::string name = "master";
    int host = 0;  // of the network
    std::string job_id;
    std::function<void(uint64_t instance, const Verdict&)> on_verdict;  // each that is sent
    std::function<void(const Reason&)> on_decision;
    std::function<bool()> leads = {};       // as of MasterLoop::Options
    std::function<void()> on_deposed = {};  // the store has refused a write for good
  };

  SimMaster(SimWorld& world, SimNetwork& network, RecordStore& store, Options options);

  void Start();  // with what the store has of an earlier life
  void Kill();
  void Freeze(Duration duration);
  void Thaw();

  // Once, when no stream is open and no job needs this master; perhaps at once.
  void TellWhenIdle(std::function<void()> callback);

  // An operator asks for it.
  void Drain(const DrainRequested& request);

  bool is_alive() const { return registry_ != nullptr; }
  bool is_serving() const { return is_alive() && !is_frozen_ && !has_retired_; }
  // The job's newest machine, or nullptr.
  const RoundMachine* machine() const;

  void OnOpened(StreamId stream) override;
  void OnMessage(StreamId stream, const AgentMessage& message, const std::string& peer) override;
  void OnBroken(StreamId stream, bool half_closed) override;

 private:
  struct Opened {
    StreamId stream = 0;
  };
  using Incoming = std::variant<Opened, MessageArrived, StreamBroken, DrainRequested, absl::Status>;

  void Deliver(Incoming incoming);
  void DrainOne();
  void Iterate(const Incoming* incoming);  // one pass of the loop
  void Handle(const Opened& event);
  void Handle(const MessageArrived& event);
  void Handle(const StreamBroken& event);
  void Handle(const DrainRequested& event) { Step(event); }
  void Handle(const absl::Status& written);  // the store's answer
  void Step(const RoundEvent& event);
  void Perform(const std::vector<JobEffects>& all);
  void TellIdle();
  void Sleep();

  SimWorld& world_;
  SimNetwork& network_;
  RecordStore& store_;
  Options options_;
  std::unique_ptr<JobRegistry> registry_;
  std::unique_ptr<RecordKeeper> keeper_;
  std::set<StreamId> open_;
  std::vector<std::function<void()>> idle_callbacks_;
  bool has_retired_ = false;  // deposed
  bool is_frozen_ = false;
  std::deque<Incoming> inbox_;  // while frozen, and until it has caught up
  Time wake_ = kNever;
  Time looked_at_{};        // the end of the last pass of the loop
  Time judge_at_ = kNever;  // kNever: no deadline has come
  uint64_t timer_ = 0;
  uint64_t freezes_ = 0;
  uint64_t lives_ = 0;
};

}  // namespace muster::sim

#endif  // MUSTER_TESTS_SIM_SIM_MASTER_H_
