#include "tests/sim/sim_warden.h"

#include <algorithm>
#include <csignal>
#include <utility>

namespace muster::sim {
namespace {

using namespace std::chrono_literals;

constexpr int kExitNoProcess = 71;

}  // namespace

SimWarden::SimWarden(SimWorld& world, JobWork& work, const Scenario& scenario, int node,
                     std::function<void(SupervisorEvent)> answer, std::function<void()> on_gone)
    : world_(world),
      work_(work),
      scenario_(scenario),
      node_(node),
      answer_(std::move(answer)),
      on_gone_(std::move(on_gone)) {}

void SimWarden::Serve(Duration delay, std::function<void()> request) {
  busy_until_ = std::max(busy_until_, world_.queue.now()) + delay;
  world_.queue.At(busy_until_, [this, request = std::move(request)] {
    if (!is_gone_) request();
  });
}

void SimWarden::Answer(SupervisorEvent event) {
  if (agent_is_gone_) return;
  answered_until_ =
      std::max(answered_until_, world_.queue.now() + world_.random.Between(10us, 500us));
  world_.queue.At(answered_until_, [this, event = std::move(event)] {
    if (!agent_is_gone_) answer_(event);
  });
}

void SimWarden::Say(int local_rank, int id, Duration delay, std::string key, std::string value) {
  world_.queue.After(delay, [this, id, local_rank, key = std::move(key), value = std::move(value)] {
    if (processes_.count(id) != 0 && !agent_is_gone_) answer_(WorkerSaid{local_rank, key, value});
  });
}

void SimWarden::Spawn(const Assignment& assignment, int local_rank) {
  Serve(world_.random.Between(100us, 20ms),
        [this, assignment, local_rank] { Fork(assignment, local_rank); });
}

void SimWarden::Fork(const Assignment& assignment, int local_rank) {
  SimRandom& random = world_.random;
  if (world_.queue.now() < world_.faults_end) {
    const bool never = random.Chance(scenario_.habits.never_starts);
    if (never || random.Chance(scenario_.habits.cannot_start)) {
      ++world_.worker_failures;
      world_.fatal_failures += never ? 1 : 0;
      return Answer(SpawnFailed{local_rank, never ? 127 : kExitNoProcess, "no luck"});
    }
  }
  is_killing_ = false;
  const int id = ++last_id_;
  Process& process = processes_[id];
  process.is_worker = true;
  process.assignment = assignment;
  process.local_rank = local_rank;
  process.ignores_term = random.Chance(scenario_.habits.ignores_term);
  WorkerHandle handle;
  handle.finish = [this, id] { EndLater(id, world_.random.Between(1ms, 1s), ExitStatus()); };
  handle.lose_peer = [this, id] {
    if (!world_.random.Chance(scenario_.habits.minds_peers)) return;
    EndLater(id, world_.random.Between(1ms, 3s), ExitStatus::Exited(1));
  };
  handle.commit = [this, id] {
    const auto found = processes_.find(id);
    if (found != processes_.end()) Say(found->second.local_rank, id, 0s, "CHECKPOINT", "saved");
  };
  handle.fail = [this, id] {
    const bool dumps = world_.random.Chance(0.5);
    ++world_.worker_failures;
    End(id, dumps ? ExitStatus::Signalled(SIGSEGV) : ExitStatus::Exited(3));
  };
  Answer(WorkerSpawned{local_rank, 1000 + id});
  DrawLife(id);
  work_.Started(node_, assignment, rank(process), std::move(handle));
}

void SimWarden::DrawLife(int id) {
  SimRandom& random = world_.random;
  const int local_rank = processes_[id].local_rank;
  if (random.Chance(scenario_.habits.says_ready)) {
    Say(local_rank, id, random.Between(1ms, 3s), "READY", "1");
  }
  if (world_.queue.now() < world_.faults_end && random.Chance(scenario_.habits.fails_early)) {
    const Duration life = random.Between(1ms, random.Chance(0.5) ? 500ms : 20s);
    world_.queue.After(life, [this, id] {
      const auto found = processes_.find(id);
      if (found == processes_.end() || found->second.is_dying) return;
      ++world_.worker_failures;
      End(id, ExitStatus::Exited(4));
    });
  }
}

void SimWarden::EndLater(int id, Duration delay, ExitStatus status) {
  const auto found = processes_.find(id);
  if (found == processes_.end() || std::exchange(found->second.is_dying, true)) return;
  world_.queue.After(delay, [this, id, status] { End(id, status); });
}

void SimWarden::End(int id, ExitStatus status) {
  const auto found = processes_.find(id);
  if (found == processes_.end()) return;
  const Process process = found->second;
  processes_.erase(found);
  if (process.is_worker) {
    if (world_.random.Chance(scenario_.habits.leaves_child)) LeaveChild();
    Answer(WorkerExited{process.local_rank, status, processes_.empty()});
    work_.Ended(process.assignment, rank(process), status.ok());
  } else if (processes_.empty()) {
    Answer(TreeEmptied{});
  }
  if (is_killing_) Kill();
  MaybeGone();
}

void SimWarden::LeaveChild() {
  const int id = ++last_id_;
  processes_[id].ignores_term = world_.random.Chance(scenario_.habits.ignores_term);
  if (world_.random.Chance(0.5)) {
    world_.queue.After(world_.random.Between(1ms, 5s), [this, id] { End(id, ExitStatus()); });
  }
}

void SimWarden::Signal(int signal, bool whole_tree) {
  Serve(world_.random.Between(10us, 1ms), [this, signal, whole_tree] {
    if (whole_tree) is_killing_ = signal == SIGKILL;
    if (signal == SIGKILL) {
      Kill();
    } else if (signal != SIGSTOP && signal != SIGCONT) {
      Terminate(signal, whole_tree);
    }
  });
}

// Whatever is decided already: SIGKILL is faster.
void SimWarden::Kill() {
  for (auto& [id, process] : processes_) {
    if (std::exchange(process.is_killed, true)) continue;
    process.is_dying = true;
    world_.queue.After(world_.random.Between(10us, 20ms),
                       [this, id = id] { End(id, ExitStatus::Signalled(SIGKILL)); });
  }
}

void SimWarden::Terminate(int signal, bool whole_tree) {
  for (auto& [id, process] : processes_) {
    if (process.ignores_term || !(whole_tree || process.is_worker)) continue;
    const ExitStatus status = world_.random.Chance(0.8)   ? ExitStatus::Signalled(signal)
                              : world_.random.Chance(0.5) ? ExitStatus::Exited(1)
                                                          : ExitStatus();
    EndLater(id, world_.random.Between(100us, 400ms), status);
  }
}

void SimWarden::TellWorkers(const std::string& text) {
  if (text != "DRAIN=1") return;
  for (const auto& [id, process] : processes_) {
    if (process.is_worker) return work_.Drain(process.assignment);
  }
}

void SimWarden::SetFence(Time fence) {
  Serve(10us, [this, fence] {
    fence_ = fence;
    if (fence == kNever) return;
    world_.queue.At(fence, [this, fence] {
      if (fence == fence_) FenceFalls();
    });
  });
}

void SimWarden::FenceFalls() {
  fence_ = kNever;
  if (is_gone_ || processes_.empty()) return;
  world_.Trace("warden of n" + std::to_string(node_), "the fence has fallen");
  is_killing_ = true;
  Kill();
}

void SimWarden::AgentIsGone() {
  agent_is_gone_ = true;
  Serve(10us, [this] {
    if (processes_.empty()) return MaybeGone();
    Terminate(SIGTERM, true);
    world_.queue.After(scenario_.orphan_grace, [this] {
      is_killing_ = true;
      Kill();
    });
  });
}

void SimWarden::MaybeGone() {
  if (!agent_is_gone_ || is_gone_ || !processes_.empty()) return;
  // Requests that were made before the agent went are served first.
  if (world_.queue.now() < busy_until_) return;
  is_gone_ = true;
  on_gone_();
}

void SimWarden::Die() {
  if (is_gone_) return;
  is_gone_ = true;
  for (const auto& [id, process] : std::exchange(processes_, {})) {
    if (process.is_worker) work_.Ended(process.assignment, rank(process), false);
  }
  Answer(WardenLost{});
}

}  // namespace muster::sim
