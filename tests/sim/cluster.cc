#include "tests/sim/cluster.h"

#include <algorithm>
#include <utility>

#include "tests/sim/sim_text.h"

namespace muster::sim {
namespace {

using namespace std::chrono_literals;

constexpr uint64_t kActionsMost = 3000000;
constexpr uint64_t kActionsAtOnce = 20000;
constexpr int kExitJoinTimeout = 75;

}  // namespace

Cluster::Cluster(uint64_t seed, bool with_trace, const std::set<int>* only)
    : scenario_(DrawScenario(seed)),
      world_(seed, with_trace),
      network_(world_, scenario_.network),
      master_(world_, network_, scenario_,
              {.on_verdict = [this](const Verdict& verdict) { HearVerdict(verdict); },
               .on_decision = [this](const Reason& reason) { CheckDecision(reason); },
               .on_change = [this] { faults_.MasterIsBack(); }}),
      work_(world_, {.work = scenario_.work,
                     .commit_gap = scenario_.commit_gap,
                     .heeds_drain = scenario_.habits.heeds_drain,
                     .is_strict = scenario_.settings.fencing == Fencing::kStrict,
                     .forgets = scenario_.forgets(),
                     .fixed_store = scenario_.fixed_ranks,
                     .is_cut_off = [this](int node) { return faults_.IsCutOff(node); }}),
      faults_(world_, scenario_, network_, master_, work_, nodes_, only) {
  master_.OnTheEnd([this] {
    ++world_.faults;
    faults_.KillMaster();
  });
  world_.faults_end = world_.queue.now() + scenario_.faults_end;
  for (int i = 0; i < scenario_.nodes(); ++i) {
    nodes_.push_back(std::make_unique<SimNode>(world_, network_, work_, scenario_, NodeOptions(i)));
  }
}

void Cluster::HearVerdict(const Verdict& verdict) {
  // A job may be drained before it runs.
  if (verdict.succeeded && verdict.cause.empty() && !work_.a_group_succeeded()) {
    world_.Violate("the job succeeded, and no group has");
  }
  verdict_ = verdict;
}

// Whatever happens to the master, who can be heard is not lost for being silent.
void Cluster::CheckDecision(const Reason& reason) {
  if (reason.code != ReasonCode::kNodeLostSilence) return;
  for (int i = 0; i < scenario_.nodes(); ++i) {
    if (nodes_[i]->id() != reason.subject || faults_.MayBeSilent(i)) continue;
    world_.Violate("the master lost " + reason.subject + " for its silence, and it was not silent");
  }
}

SimNode::Options Cluster::NodeOptions(int index) {
  SimNode::Options options;
  options.index = index;
  options.reserve_port = [this] { return ++last_port_; };
  const bool is_host = scenario_.is_hosted && index == 0;
  options.on_open = [this, is_host] {
    if (!is_host || master_.is_alive()) return;
    master_.Start();
    faults_.MasterIsBack();
  };
  options.when_idle = [this, is_host](std::function<void()> callback) {
    if (is_host && master_.is_alive()) return master_.TellWhenIdle(std::move(callback));
    callback();
  };
  options.on_gone = [this, is_host] {
    if (!is_host) return;
    ++world_.faults;
    if (scenario_.forgets()) ++world_.master_crashes;
    master_.Kill();
  };
  options.may_have_no_master = [this] { return MayHaveNoMaster(); };
  options.is_job_over = [this] { return verdict_.has_value(); };
  options.on_end = [this](int exit_code) { exit_codes_.push_back(exit_code); };
  return options;
}

// With nothing in its way any more, each agent finds the master.
bool Cluster::MayHaveNoMaster() const {
  if (scenario_.is_hosted && !master_.is_alive()) return true;
  const Duration to_elect_it =
      scenario_.candidates == 0 ? Duration::zero() : 2 * scenario_.etcd_lease + 20s;
  const Duration to_find_it = scenario_.settings.lease() + scenario_.stop_grace + 20s + to_elect_it;
  return world_.faults > 0 && world_.queue.now() < world_.faults_end + to_find_it;
}

bool Cluster::IsSettled() const {
  return std::all_of(nodes_.begin(), nodes_.end(),
                     [](const auto& node) { return node->is_settled(); });
}

Result Cluster::Run() {
  if (!scenario_.is_hosted) master_.Start();
  for (const auto& node : nodes_) {
    world_.queue.After(world_.random.Between(0s, scenario_.launch_spread),
                       [&node] { node->Launch(); });
  }
  faults_.Begin();
  const Time limit = world_.faults_end + scenario_.patience();
  bool has_begun = false;
  while (world_.violation.empty() && world_.queue.RunNext()) {
    has_begun = has_begun || world_.queue.now() > Time(1h) + scenario_.launch_spread;
    if (has_begun && IsSettled()) break;
    if (world_.queue.now() > limit) CheckHang();
    if (world_.queue.actions() > kActionsMost) world_.Violate("too much happens");
    if (world_.queue.actions_at_this_time() > kActionsAtOnce) world_.Violate("time stands still");
  }
  if (world_.violation.empty()) CheckEnd();
  Result result;
  result.violation = world_.violation;
  result.scenario = scenario_.ToString();
  result.trace = std::move(world_.trace);
  result.actions = world_.queue.actions();
  result.faults = world_.faults;
  result.struck = faults_.struck();
  result.generations = last_port_ - 20000;
  result.exit_code = verdict_ ? verdict_->exit_code : -1;
  result.duration = world_.queue.now() - Time(1h);
  result.patience_used =
      std::chrono::duration<double>(world_.queue.now() - world_.faults_end) / scenario_.patience();
  return result;
}

void Cluster::CheckHang() {
  std::string alive;
  for (const auto& node : nodes_) {
    if (node->is_settled()) continue;
    alive += " " + node->id();
    if (const SimAgent* agent = node->agent()) {
      alive += " (phase " + std::to_string(static_cast<int>(agent->machine().phase())) + ")";
    }
  }
  world_.Violate("the job neither ends nor goes on; alive:" + alive);
}

void Cluster::CheckEnd() {
  if (!IsSettled()) return CheckHang();
  const bool all_is_well = world_.faults == 0 && world_.worker_failures == 0;
  const bool was_drained = verdict_ && !verdict_->cause.empty() && world_.drains > 0;
  if (verdict_ && verdict_->succeeded && !work_.is_done() && !was_drained) {
    world_.Violate("the job succeeded without its work being done");
  }
  if (all_is_well) {
    // Who is launched after the end begins the next instance, and may find too few others for it.
    const int late = work_.is_done() ? kExitJoinTimeout : 0;
    const bool has_failed = !verdict_ || (!verdict_->succeeded && verdict_->exit_code != late);
    if (has_failed) world_.Violate("nothing went wrong, and the job failed");
    for (const int exit_code : exit_codes_) {
      if (exit_code != 0 && exit_code != late) {
        world_.Violate("nothing went wrong, and an agent ended with " + std::to_string(exit_code));
      }
    }
  }
  if (!verdict_ || verdict_->succeeded || verdict_->exit_code == kExitJoinTimeout) return;
  const bool over_budget =
      world_.worker_failures + world_.master_crashes > scenario_.settings.max_restarts;
  const bool was_cut_short = world_.drains > 0 && !over_budget;
  if (!over_budget && !was_cut_short && world_.fatal_failures == 0) {
    world_.Violate("the job failed for " + std::to_string(world_.worker_failures) +
                   " failures with a budget of " + std::to_string(scenario_.settings.max_restarts));
  }
}

Result Simulate(uint64_t seed, bool with_trace, const std::set<int>* only) {
  return Cluster(seed, with_trace, only).Run();
}

}  // namespace muster::sim
