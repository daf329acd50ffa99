#include "tests/sim/scenario.h"

#include <algorithm>

#include "tests/sim/sim_text.h"

namespace muster::sim {
namespace {

using namespace std::chrono_literals;

void DrawSettings(SimRandom& random, Scenario& scenario) {
  JobSettings& settings = scenario.settings;
  const int nodes = scenario.nodes();
  scenario.fixed_ranks = random.Chance(0.1);
  const bool is_fixed = scenario.fixed_ranks || random.Chance(0.4);
  settings.nodes_min = static_cast<int>(random.Between(std::max(1, nodes - 3), nodes));
  settings.nodes_max =
      is_fixed ? settings.nodes_min
               : static_cast<int>(random.Between(settings.nodes_min, std::max(nodes, 2)));
  if (scenario.fixed_ranks) settings.nodes_min = settings.nodes_max = nodes;
  settings.max_restarts =
      static_cast<int>(random.Chance(0.5) ? random.Between(0, 3) : random.Between(0, 30));
  settings.last_call = random.Between(0s, 5s);
  settings.join_timeout = random.Between(15s, 60s);
  settings.keep_alive_interval = random.Between(500ms, 3s);
  settings.keep_alive_max_attempt = static_cast<int>(random.Between(2, 4));
  settings.exit_barrier_timeout = random.Between(10s, 40s);
  settings.fencing = random.Chance(0.35) ? Fencing::kStrict : Fencing::kToken;
  settings.join_policy = random.Chance(0.5)   ? JoinPolicy::kNow
                         : random.Chance(0.5) ? JoinPolicy::kRestart
                                              : JoinPolicy::kCheckpoint;
  if (!is_fixed && random.Chance(0.3)) {
    settings.node_unit = settings.nodes_min > 1 ? 2 : 1;
    settings.nodes_min = settings.usable(settings.nodes_min);
    settings.nodes_max = settings.usable(settings.nodes_max);
  }
  if (random.Chance(0.3)) settings.max_node_failures = static_cast<int>(random.Between(1, 3));
  settings.node_failure_window = random.Between(10s, 300s);
  scenario.stop_grace = random.Between(500ms, 5s);
  const Duration least = settings.lease() + scenario.stop_grace;
  settings.master_loss_timeout = settings.fencing == Fencing::kStrict
                                     ? random.Between(least, 2 * least)
                                     : random.Between(least, 10 * least);
  scenario.freeze_most = 3 * settings.lease();
  scenario.orphan_grace = random.Between(100ms, 1s);
}

void DrawFaults(SimRandom& random, Scenario& scenario) {
  scenario.work = random.Between(5s, random.Chance(0.5) ? 60s : 600s);
  scenario.commit_gap = random.Between(500ms, 20s);
  scenario.faults_end = random.Between(10s, random.Chance(0.5) ? 120s : 900s);
  scenario.launch_spread = random.Chance(0.7) ? 3s : scenario.settings.join_timeout * 8 / 10;
  if (random.Chance(0.08)) return;  // nothing goes wrong
  scenario.fault_gap = random.Between(1s, random.Chance(0.5) ? 15s : 60s);
  for (int kind = 0; kind <= static_cast<int>(FaultKind::kJobDrained); ++kind) {
    scenario.fault_weights[kind] = random.Chance(0.5) ? static_cast<int>(random.Between(1, 5)) : 0;
  }
  // It ends the job: not the fate of half of them.
  if (random.Chance(0.8)) scenario.fault_weights[static_cast<int>(FaultKind::kJobDrained)] = 0;
  const auto& weights = scenario.fault_weights;
  if (std::count(weights.begin(), weights.end(), 0) == kFaultKinds) scenario.fault_weights[0] = 1;
  scenario.comes_back = random.Chance(0.3) ? 1 : 0.01 * static_cast<double>(random.Between(0, 100));
  scenario.tells_last_will = 0.01 * static_cast<double>(random.Between(0, 100));
  if (random.Chance(0.3)) scenario.network.break_at_hello = 0.2;
  WorkerHabits& habits = scenario.habits;
  if (random.Chance(0.3)) habits.fails_early = random.Chance(0.5) ? 0.03 : 0.3;
  if (random.Chance(0.2)) habits.cannot_start = 0.05;
  if (random.Chance(0.03)) habits.never_starts = 0.02;
}

void DrawHabits(SimRandom& random, WorkerHabits& habits) {
  if (random.Chance(0.4)) habits.ignores_term = random.Chance(0.5) ? 0.1 : 0.9;
  if (random.Chance(0.4)) habits.leaves_child = random.Chance(0.5) ? 0.1 : 0.9;
  habits.minds_peers = random.Chance(0.5) ? 0.9 : 0.01 * static_cast<double>(random.Between(0, 90));
  habits.says_ready = random.Chance(0.5) ? 1 : 0.5;
  habits.heeds_drain = random.Chance(0.7) ? 1 : 0.5;
}

const char* JoinPolicyText(JoinPolicy policy) {
  switch (policy) {
    case JoinPolicy::kNow:
      return "now";
    case JoinPolicy::kCheckpoint:
      return "at a commit point";
    case JoinPolicy::kRestart:
      return "at a restart";
  }
  return "?";
}

void DrawStore(SimRandom& random, Scenario& scenario) {
  SimStore::Options& store = scenario.store;
  store.exists = random.Chance(0.5);
  if (!store.exists) return;
  store.slowest = random.Between(100us, random.Chance(0.7) ? 20ms : 2s);
  if (scenario.fault_gap == Duration::zero()) return;
  if (random.Chance(0.3)) store.fails = random.Chance(0.5) ? 0.05 : 0.5;
  if (random.Chance(0.6)) store.is_the_end = random.Chance(0.5) ? 0.05 : 0.3;
}

// Of numbers of its own: the other scenarios do not depend on it (nor do those of named seeds).
void DrawElection(Scenario& scenario) {
  SimRandom random(scenario.seed * 0xbf58476d1ce4e5b9 + 102413);
  if (!scenario.store.exists || scenario.is_hosted || !random.Chance(0.5)) return;
  scenario.candidates = static_cast<int>(random.Between(2, 3));
  scenario.etcd_lease = std::chrono::seconds(random.Between(2, 6));
  scenario.store.fails = scenario.store.is_the_end = 0;  // that is what the cuts and deaths do
  scenario.store.slowest = random.Between(100us, random.Chance(0.7) ? 5ms : 100ms);
  if (scenario.fault_gap == Duration::zero()) return;
  const bool are_cut = random.Chance(0.6);
  scenario.fault_weights[static_cast<int>(FaultKind::kEtcdCut)] =
      are_cut ? static_cast<int>(random.Between(1, 5)) : 0;
}

std::string Percent(double share) { return std::to_string(static_cast<int>(share * 100)) + "%"; }

}  // namespace

const char* FaultName(FaultKind kind) {
  switch (kind) {
    case FaultKind::kWorkerFails:
      return "worker fails";
    case FaultKind::kAgentDies:
      return "agent dies";
    case FaultKind::kAgentFreezes:
      return "agent freezes";
    case FaultKind::kPartition:
      return "partition";
    case FaultKind::kStreamBreaks:
      return "stream breaks";
    case FaultKind::kMasterDies:
      return "master dies";
    case FaultKind::kMasterFreezes:
      return "master freezes";
    case FaultKind::kNodeLeaves:
      return "node leaves";
    case FaultKind::kWardenDies:
      return "warden dies";
    case FaultKind::kNodeDrained:
      return "node drained";
    case FaultKind::kJobDrained:
      return "job drained";
    case FaultKind::kEtcdCut:
      return "etcd cut";
  }
  return "?";
}

Scenario DrawScenario(uint64_t seed) {
  SimRandom random(seed * 0x9e3779b97f4a7c15 + 1);
  Scenario scenario;
  scenario.seed = seed;
  scenario.slots.resize(random.Between(1, random.Chance(0.7) ? 4 : 8));
  for (int& slots : scenario.slots) slots = static_cast<int>(random.Between(1, 3));
  if (scenario.nodes() == 1) scenario.slots.push_back(1);
  DrawSettings(random, scenario);
  scenario.is_hosted = random.Chance(0.25);
  scenario.network.nodes = scenario.nodes();
  scenario.network.delay_min = random.Chance(0.5) ? 50us : 1ms;
  scenario.network.delay_max =
      scenario.network.delay_min * random.Between(1, random.Chance(0.8) ? 20 : 200);
  scenario.network.connect_timeout = random.Between(1s, 5s);
  DrawHabits(random, scenario.habits);
  DrawFaults(random, scenario);
  DrawStore(random, scenario);
  DrawElection(scenario);
  return scenario;
}

Duration Scenario::patience() const {
  const Duration one_generation = settings.join_timeout + settings.lease() + 2 * stop_grace +
                                  settings.last_call + 2 * settings.master_loss_timeout + 60s;
  const Duration one_election = candidates == 0 ? Duration::zero() : 2 * etcd_lease + 20s;
  return 3 * (one_generation + one_election) + 2 * work + 2 * settings.exit_barrier_timeout;
}

std::string Scenario::ToString() const {
  std::string text =
      "seed " + std::to_string(seed) + ": " + std::to_string(nodes()) + " nodes of" + [this] {
        std::string list;
        for (int count : slots) list += " " + std::to_string(count);
        return list;
      }();
  text += ", nnodes " + std::to_string(settings.nodes_min) + ":" +
          std::to_string(settings.nodes_max) + (fixed_ranks ? " with fixed ranks" : "") +
          (is_hosted ? ", master on n0" : "") + ", max_restarts " +
          std::to_string(settings.max_restarts) + ", " +
          (settings.fencing == Fencing::kStrict ? "strict" : "token") + " fencing, join " +
          JoinPolicyText(settings.join_policy) + ", unit " + std::to_string(settings.node_unit) +
          ", max_node_failures " + std::to_string(settings.max_node_failures) + "\n  last_call " +
          Text(settings.last_call) + ", join_timeout " + Text(settings.join_timeout) + ", lease " +
          Text(settings.lease()) + ", master_loss " + Text(settings.master_loss_timeout) +
          ", exit_barrier " + Text(settings.exit_barrier_timeout) + ", stop_grace " +
          Text(stop_grace) + ", work " + Text(work) + "\n  faults until " + Text(faults_end) +
          " every " + Text(fault_gap) + ":";
  for (int kind = 0; kind < kFaultKinds; ++kind) {
    if (!Has(static_cast<FaultKind>(kind))) continue;
    text += std::string(" ") + FaultName(static_cast<FaultKind>(kind)) + " (" +
            std::to_string(fault_weights[kind]) + ")";
  }
  if (candidates > 0) {
    text += "; " + std::to_string(candidates) + " masters elected with a lease of " +
            Text(etcd_lease) + ", etcd takes " + Text(store.slowest);
  } else if (store.exists) {
    text += "; a store that takes " + Text(store.slowest) + ", fails " + Percent(store.fails) +
            ", is the master's end " + Percent(store.is_the_end);
  }
  return text + "; comes back " + Percent(comes_back) + ", ignores TERM " +
         Percent(habits.ignores_term) + ", leaves a child " + Percent(habits.leaves_child) +
         ", minds peers " + Percent(habits.minds_peers);
}

}  // namespace muster::sim
