#include "tests/sim/sim_masters.h"

#include <algorithm>
#include <utility>

namespace muster::sim {

using namespace std::chrono_literals;

SimMasters::SimMasters(SimWorld& world, SimNetwork& network, const Scenario& scenario,
                       Options options)
    : world_(world), options_(std::move(options)), store_(world, scenario.store) {
  SimMaster::Options master;
  master.job_id = "job";
  master.on_verdict = [this](uint64_t instance, const Verdict& verdict) {
    CheckVerdict(instance, verdict);
  };
  master.on_decision = options_.on_decision;
  if (scenario.candidates == 0) {
    alone_ = std::make_unique<SimMaster>(world, network, store_, std::move(master));
    return;
  }
  etcd_ = std::make_unique<SimEtcd>(
      world, SimEtcd::Options{scenario.candidates, scenario.etcd_lease, scenario.store.slowest});
  for (int number = 0; number < scenario.candidates; ++number) {
    SimCandidate::Options candidate;
    candidate.number = number;
    candidate.clock.offset = world.random.Between(0s, 1000s);
    candidate.clock.drift = static_cast<int>(world.random.Between(-5000, 5000));
    candidate.master = master;
    candidate.on_change = options_.on_change;
    candidates_.push_back(
        std::make_unique<SimCandidate>(world, network, *etcd_, std::move(candidate)));
  }
  network.OnFind([this](int) { return Find(); });
}

// Agents hear late of a new leader, and try one endpoint after the other where they have several.
int SimMasters::Find() {
  if (world_.random.Chance(0.9)) return etcd_->leader();
  return static_cast<int>(world_.random.Between(0, static_cast<int64_t>(candidates_.size()) - 1));
}

void SimMasters::CheckVerdict(uint64_t instance, const Verdict& verdict) {
  const auto [known, is_new] = verdicts_.emplace(instance, verdict);
  if (known->second != verdict) world_.Violate("master: one job, two verdicts");
  if (is_new) options_.on_verdict(verdict);
}

void SimMasters::Start() {
  if (alone_ != nullptr) return alone_->Start();
  for (const auto& candidate : candidates_) candidate->Start();
}

// Most often the one that leads.
SimCandidate& SimMasters::AnyCandidate() {
  const int leader = etcd_->leader();
  if (leader >= 0 && world_.random.Chance(0.7)) return *candidates_[leader];
  return *candidates_[world_.random.Between(0, static_cast<int64_t>(candidates_.size()) - 1)];
}

void SimMasters::Kill() {
  if (alone_ == nullptr) return AnyCandidate().Kill();
  alone_->Kill();
  if (!store_.exists()) verdicts_.clear();
}

void SimMasters::Freeze(Duration duration) {
  if (alone_ != nullptr) return alone_->Freeze(duration);
  AnyCandidate().Freeze(duration);
}

void SimMasters::Thaw() {
  if (alone_ != nullptr) return alone_->Thaw();
  for (const auto& candidate : candidates_) candidate->Thaw();
}

void SimMasters::CutFromEtcd(Duration duration) {
  if (world_.random.Chance(0.7)) return etcd_->Cut(AnyCandidate().number(), duration);
  for (size_t number = 0; number < candidates_.size(); ++number) {
    etcd_->Cut(static_cast<int>(number), duration);
  }
}

void SimMasters::Heal() {
  if (etcd_ != nullptr) etcd_->HealAll();
}

void SimMasters::Drain(const DrainRequested& request) {
  if (alone_ != nullptr) return alone_->Drain(request);
  const int leader = etcd_->leader();
  if (leader >= 0) candidates_[leader]->master().Drain(request);
}

bool SimMasters::is_alive() const {
  if (alone_ != nullptr) return alone_->is_alive();
  return std::any_of(candidates_.begin(), candidates_.end(),
                     [](const auto& candidate) { return candidate->is_alive(); });
}

bool SimMasters::is_serving() const {
  if (alone_ != nullptr) return alone_->is_alive();
  const int leader = etcd_->leader();
  return leader >= 0 && candidates_[leader]->master().is_serving();
}

}  // namespace muster::sim
