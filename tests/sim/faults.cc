#include "tests/sim/faults.h"

#include <algorithm>
#include <csignal>
#include <numeric>

namespace muster::sim {
namespace {

using namespace std::chrono_literals;

}  // namespace

Faults::Faults(SimWorld& world, const Scenario& scenario, SimNetwork& network, SimMasters& master,
               JobWork& work, std::vector<std::unique_ptr<SimNode>>& nodes,
               const std::set<int>* only)
    : world_(world),
      scenario_(scenario),
      network_(network),
      master_(master),
      work_(work),
      nodes_(nodes),
      only_(only),
      random_(scenario.seed),
      cut_off_until_(scenario.nodes(), Time::min()),
      silent_until_(scenario.nodes(), Time::min()) {
  network_.OnLoss([this](int node) { CutOff(node, 0s); });
}

void Faults::Begin() {
  world_.queue.At(world_.faults_end, [this] { Mend(); });
  if (scenario_.fault_gap > Duration::zero()) Next();
}

// Each fault has random numbers of its own, so that one can be left out and the others stay.
void Faults::Next() {
  random_ = SimRandom(scenario_.seed * 1000003 + static_cast<uint64_t>(++number_));
  const Duration gap = random_.Between(0s, 2 * scenario_.fault_gap);
  world_.queue.After(gap, [this, random = random_, number = number_] {
    if (world_.queue.now() >= world_.faults_end) return;
    random_ = random;
    if (only_ == nullptr || only_->count(number) != 0) Strike(Draw());
    Next();
  });
}

FaultKind Faults::Draw() {
  const auto& weights = scenario_.fault_weights;
  int64_t ticket = random_.Between(0, std::accumulate(weights.begin(), weights.end(), 0) - 1);
  for (int kind = 0; kind < kFaultKinds; ++kind) {
    ticket -= weights[kind];
    if (ticket < 0) return static_cast<FaultKind>(kind);
  }
  return FaultKind::kWorkerFails;
}

void Faults::Strike(FaultKind kind) {
  ++world_.faults;
  const int node = static_cast<int>(random_.Between(0, scenario_.nodes() - 1));
  struck_.insert(number_);
  world_.Trace("fault", "#" + std::to_string(number_) + " " + FaultName(kind) + " (" +
                            nodes_[node]->id() + ")");
  switch (kind) {
    case FaultKind::kWorkerFails:
      if (const WorkerHandle* worker = work_.AnyWorker(random_.Next())) {
        // The worker's end takes the handle away.
        const auto fail = worker->fail;
        fail();
      }
      break;
    case FaultKind::kAgentDies:
      CutOff(node, scenario_.orphan_grace);
      Silence(node, 0s);
      nodes_[node]->KillAgent();
      break;
    case FaultKind::kAgentFreezes:
      FreezeAgent(node);
      break;
    case FaultKind::kPartition:
      Partition(node);
      break;
    case FaultKind::kStreamBreaks:
      CutOff(node, 0s);
      Silence(node, 0s);
      network_.Break(node);
      break;
    case FaultKind::kMasterDies:
      KillMaster();
      break;
    case FaultKind::kMasterFreezes:
      FreezeMaster();
      break;
    case FaultKind::kNodeLeaves:
      SignalNode(node);
      break;
    case FaultKind::kWardenDies:
      nodes_[node]->KillWarden();
      break;
    case FaultKind::kNodeDrained:
    case FaultKind::kJobDrained:
      ++world_.drains;
      master_.Drain({kind == FaultKind::kJobDrained ? "" : nodes_[node]->id(), "somebody",
                     random_.Between(100ms, 30s)});
      break;
    case FaultKind::kEtcdCut:
      CutEtcd();
      break;
  }
}

// Twice for a scheduler that signals the process and the group, or for somebody who is impatient.
void Faults::SignalNode(int node) {
  SimAgent* const agent = nodes_[node]->agent();
  if (agent == nullptr) return;
  agent->Signal(random_.Chance(0.8) ? SIGTERM : SIGINT);
  if (!random_.Chance(0.3)) return;
  world_.queue.After(random_.Between(0s, 3s), [agent] { agent->Signal(SIGTERM); });
}

void Faults::Partition(int node) {
  const bool both = random_.Chance(0.5);
  const bool up = both || random_.Chance(0.5);
  const Duration longest = random_.Chance(0.2) ? 2 * scenario_.settings.master_loss_timeout
                                               : 2 * scenario_.settings.lease();
  const Duration duration = random_.Between(10ms, longest);
  // Nodes lose the master's host, not the other way round.
  for (int other = 0; other < scenario_.nodes(); ++other) {
    if (scenario_.is_hosted && node == 0 ? other == 0 : other != node) continue;
    network_.Partition(other, up, both || !up, duration);
    CutOff(other, duration);
    Silence(other, duration);
  }
}

void Faults::FreezeAgent(int node) {
  SimAgent* const agent = nodes_[node]->agent();
  if (agent == nullptr) return;
  const Duration duration = random_.Between(0ms, scenario_.freeze_most);
  CutOff(node, duration);
  Silence(node, duration);
  agent->Freeze(duration);
  if (!scenario_.is_hosted || node != 0) return;
  CutOffAll(duration);
  master_.Freeze(duration);
}

void Faults::KillMaster() {
  if (!master_.is_alive()) return;
  if (scenario_.is_hosted) {
    return nodes_[0]->KillAgent();
  }
  if (scenario_.forgets()) ++world_.master_crashes;
  master_.Kill();
  const Duration longest =
      random_.Chance(0.1) ? 2 * scenario_.settings.master_loss_timeout : Duration(20s);
  const Duration away = random_.Between(50ms, longest);
  world_.queue.After(away, [this] {
    master_.Start();
    MasterIsBack();
  });
}

void Faults::FreezeMaster() {
  if (scenario_.is_hosted) return FreezeAgent(0);
  const Duration duration = random_.Between(0s, 3 * scenario_.settings.lease());
  CutOffAll(duration);
  // What is silent already is judged so much later.
  for (int node = 0; node < scenario_.nodes(); ++node) {
    if (MayBeSilent(node)) Silence(node, duration);
  }
  master_.Freeze(duration);
}

// Who leads serves on for a while, and can write nothing.
void Faults::CutEtcd() {
  const Duration longest = random_.Chance(0.3) ? 60s : 2 * scenario_.etcd_lease;
  const Duration duration = random_.Between(10ms, longest);
  CutOffAll(duration);
  master_.CutFromEtcd(duration);
}

// The consequences last: the stream must be found dead, or opened again, and the master must have
// heard and stopped what ran there.
void Faults::CutOff(int node, Duration duration) {
  const Duration aftermath = scenario_.settings.lease() + 2 * scenario_.stop_grace + 30s;
  cut_off_until_[node] = std::max(cut_off_until_[node], world_.queue.now() + duration + aftermath);
}

// Silence is judged a lease later, and a master that has been away takes its time.
void Faults::Silence(int node, Duration duration) {
  const Duration aftermath = 3 * scenario_.settings.lease() + 2s;
  silent_until_[node] = std::max(silent_until_[node], world_.queue.now() + duration + aftermath);
}

bool Faults::MayBeSilent(int node) const {
  return nodes_[node]->agent() == nullptr || world_.queue.now() < silent_until_[node];
}

void Faults::CutOffAll(Duration duration) {
  for (int node = 0; node < scenario_.nodes(); ++node) CutOff(node, duration);
}

bool Faults::IsCutOff(int node) const {
  return !master_.is_serving() || world_.queue.now() < cut_off_until_[node];
}

void Faults::Mend() {
  world_.Trace("fault", "no more from here on");
  network_.HealAll();
  master_.Heal();
  if (scenario_.candidates > 0 || (!scenario_.is_hosted && !master_.is_alive())) {
    master_.Start();
    MasterIsBack();
  }
  master_.Thaw();
  for (const auto& node : nodes_) {
    if (SimAgent* agent = node->agent()) agent->Thaw();
  }
}

}  // namespace muster::sim
