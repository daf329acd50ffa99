#include "tests/sim/sim_node.h"

#include <utility>

namespace muster::sim {
namespace {

using namespace std::chrono_literals;

constexpr int kExitRefused = 77;

}  // namespace

SimNode::SimNode(SimWorld& world, SimNetwork& network, JobWork& work, const Scenario& scenario,
                 Options options)
    : world_(world),
      network_(network),
      work_(work),
      scenario_(scenario),
      options_(std::move(options)),
      id_("n" + std::to_string(options_.index)),
      will_sender_(network) {}

SimAgent* SimNode::agent() {
  return !lives_.empty() && lives_.back()->is_alive() ? lives_.back().get() : nullptr;
}

bool SimNode::is_settled() const {
  if (is_launch_pending_) return false;
  return lives_.empty() || (!lives_.back()->is_alive() && lives_.back()->warden().is_gone());
}

SupervisorOptions SimNode::MachineOptions() const {
  SupervisorOptions options;
  Hello& hello = options.hello;
  hello.job_id = "job";
  hello.settings = scenario_.settings;
  hello.node_id = id_;
  hello.incarnation = 100 * (options_.index + 1) + lives_.size() + 1;
  hello.slots = scenario_.slots[options_.index];
  hello.own_addresses = {"10.0.0." + std::to_string(options_.index + 1)};
  hello.dialled_host = "10.0.0.100";
  if (scenario_.fixed_ranks) {
    hello.fixed_group_rank = options_.index;
    hello.fixed_master_addr = "10.0.0.1";
    hello.fixed_master_port = 29500;
  }
  options.stop_grace = scenario_.stop_grace;
  options.orphan_grace = scenario_.orphan_grace;
  options.has_remote_master = true;
  options.seed = world_.random.Next();
  return options;
}

void SimNode::Launch() {
  is_launch_pending_ = false;
  if (options_.is_job_over()) return;
  was_killed_ = false;
  SimAgent::Options options;
  options.node = options_.index;
  options.machine = MachineOptions();
  options.clock.offset = world_.random.Between(0s, 1000s);
  options.clock.drift = static_cast<int>(world_.random.Between(-5000, 5000));
  options.reserve_port = options_.reserve_port;
  options.on_open = options_.on_open;
  options.when_idle = options_.when_idle;
  options.may_have_no_master = options_.may_have_no_master;
  options.on_end = [this](int exit_code) {
    wants_to_come_back_ = exit_code != kExitRefused;
    options_.on_end(exit_code);
    options_.on_gone();
    if (lives_.back()->warden().is_gone()) MaybeComeBack();
  };
  lives_.push_back(std::make_unique<SimAgent>(world_, network_, work_, scenario_,
                                              std::move(options), [this] { WardenIsGone(); }));
  lives_.back()->Begin();
}

void SimNode::KillAgent() {
  if (agent() == nullptr) return;
  was_killed_ = true;
  wants_to_come_back_ = true;
  const bool warden_is_gone = agent()->warden().is_gone();
  agent()->Kill();
  options_.on_gone();
  if (warden_is_gone) MaybeComeBack();
}

void SimNode::KillWarden() {
  if (agent() != nullptr) agent()->warden().Die();
}

void SimNode::WardenIsGone() {
  const SimAgent& last = *lives_.back();
  const int64_t generation = last.machine().assignment().generation;
  if (was_killed_ && generation > 0 && world_.random.Chance(scenario_.tells_last_will)) {
    will_sender_.Tell(options_.index,
                      LastWill{last.hello().job_id, id_, last.hello().incarnation, generation});
  }
  MaybeComeBack();
}

void SimNode::WillSender::Tell(int node, LastWill will) {
  network_.Send(network_.Open(node, this), std::move(will));
}

void SimNode::MaybeComeBack() {
  const bool in_time = world_.queue.now() < world_.faults_end;
  if (!in_time || !wants_to_come_back_ || options_.is_job_over()) return;
  if (!world_.random.Chance(scenario_.comes_back)) return;
  is_launch_pending_ = true;
  world_.queue.After(world_.random.Between(100ms, 20s), [this] { Launch(); });
}

}  // namespace muster::sim
