// Random walks: anything may be said at any time by anyone, and every invariant holds after every
// step. When the noise stops and well-behaved agents come, a generation forms.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "tests/rendezvous/test_job.h"

namespace muster {
namespace {

using namespace std::chrono_literals;

constexpr int kSteps = 300;

class Walk {
 public:
  explicit Walk(uint64_t seed) : random_(seed), job_(RandomSettings()) {
    for (int i = 0; i < 5; ++i) names_.push_back("node" + std::to_string(i));
  }

  // One random thing happens.
  void Stir() {
    const std::string& name = names_[Below(names_.size())];
    switch (Below(17)) {
      case 0:
      case 1:
        return Join(name);
      case 2:
        return job_.Advance(std::chrono::milliseconds(Below(40'000)));
      case 3:
        if (Below(20) == 0) job_.Step(StopRequested{"random"});
        return;
      case 4:
        return job_.Freeze(std::chrono::milliseconds(Below(30'000)));
      case 5:
        job_.Step(DeadlinePassed{});
        return;
      case 6:
        job_.Will({"job", name, 100 + Below(3), Generation()});
        return;
      case 7:
        if (Below(4) == 0) job_.Restart();
        return;
      case 8:
        if (Below(6) == 0) {
          const std::string whom = Below(10) == 0 ? "" : name;
          job_.Step(DrainRequested{whom, "random", std::chrono::seconds(Below(60))});
        }
        return;
      default:
        if (joined_.count(name) == 0) return;
        return Speak(name);
    }
  }

  // Fresh, well-behaved agents: a generation or a verdict must come of it.
  void Settle() {
    for (const std::string& name : names_) {
      Hello hello = job_.HelloOf(name);
      hello.incarnation = 1'000'000 + Below(1000);
      job_.Join(hello);
    }
    for (int round = 0; round < 60; ++round) {
      if (IsSettled()) return;
      for (const std::string& name : names_) {
        const auto& nodes = job_.machine().nodes();
        const auto found = nodes.find(name);
        if (found == nodes.end() || !found->second.attached()) continue;
        const Node& node = found->second;
        if (node.group_rank >= 0 && node.phase == WorkersPhase::kStopping) job_.Stopped(name);
      }
      job_.Advance(20s);
    }
    ADD_FAILURE() << "no generation and no verdict";
  }

  bool is_broken() const { return !job_.broken().empty(); }

 private:
  bool IsSettled() const {
    const RoundPhase phase = job_.machine().phase();
    return phase == RoundPhase::kRunning || phase == RoundPhase::kClosed;
  }

  uint64_t Below(uint64_t limit) { return random_() % limit; }

  int64_t Generation() {
    const int64_t current = job_.machine().generation();
    return Below(4) > 0 ? current : std::max<int64_t>(0, current - 1 + Below(3));
  }

  JobSettings RandomSettings() {
    const int nodes_min = 1 + static_cast<int>(Below(3));
    JobSettings settings = NodesFrom(nodes_min, nodes_min + static_cast<int>(Below(3)), 50);
    if (Below(3) == 0) settings.max_restarts = static_cast<int>(Below(3));
    settings.join_policy = static_cast<JoinPolicy>(Below(3));
    if (Below(3) == 0) {
      settings.nodes_min *= 2;
      settings.nodes_max *= 2;
      settings.node_unit = 2;
    }
    if (Below(2) == 0) {
      settings.max_node_failures = 1 + static_cast<int>(Below(3));
      settings.node_failure_window = std::chrono::seconds(1 + Below(300));
    }
    if (Below(3) == 0) {
      settings.fencing = Fencing::kStrict;
      settings.master_loss_timeout = 30s;
    }
    return settings;
  }

  void Join(const std::string& name) {
    joined_.insert(name);
    if (Below(3) == 0 && job_.machine().nodes().count(name) > 0) {
      job_.Rejoin(name, static_cast<WorkersPhase>(Below(5)));
      return;
    }
    Hello hello = job_.HelloOf(name);
    hello.incarnation = 100 + Below(3);
    if (Below(3) == 0) {
      Assignment& place = hello.running.assignment;
      hello.running.phase = static_cast<WorkersPhase>(Below(5));
      place.instance = job_.machine().instance();
      place.generation = Generation() + (Below(10) == 0 ? 5 : 0);
      place.group_world_size = 1 + static_cast<int>(Below(3));
      place.group_rank = static_cast<int>(Below(3));
      place.rank_base = place.group_rank * 2;
      place.world_size = place.group_world_size * 2;
      place.role_world_size = place.world_size;
    }
    job_.Join(hello);
  }

  void Speak(const std::string& name) {
    const int64_t generation = Generation();
    switch (Below(11)) {
      case 0:
        job_.Say(name, WorkersStarted{generation});
        return;
      case 9:
        job_.Say(name, CommitPoint{generation});
        return;
      case 1:
        job_.Say(name, WorkersReady{generation});
        return;
      case 2:
      case 3:
      case 4:
        job_.Say(name, WorkersStopped{generation, 1234});
        return;
      case 5:
        job_.Say(name, WorkersSucceeded{generation, 1234});
        return;
      case 6:
        return Fail(name, generation);
      case 7:
        if (Below(3) == 0) job_.Say(name, Leaving{generation, LeaveCause(Below(3)), ""});
        return;
      case 8:
        job_.Break(name, Below(3) == 0);
        return;
      default:
        job_.Mute(name);
    }
  }

  void Fail(const std::string& name, int64_t generation) {
    WorkerFailed failed;
    failed.generation = generation;
    failed.status = ExitStatus::Exited(1 + static_cast<int>(Below(3)));
    failed.uptime = std::chrono::milliseconds(Below(20'000));
    failed.can_restart = Below(30) != 0;
    job_.Say(name, failed);
  }

  std::mt19937_64 random_;
  TestJob job_;
  std::vector<std::string> names_;
  std::set<std::string> joined_;
};

TEST(RoundWalk, InvariantsHoldWhateverIsSaidAndAGenerationFormsAfterwards) {
  const char* only = std::getenv("WALK_SEED");
  const uint64_t first = only != nullptr ? std::strtoull(only, nullptr, 10) : 1;
  const uint64_t last = only != nullptr ? first : 1500;
  for (uint64_t seed = first; seed <= last; ++seed) {
    SCOPED_TRACE("to repeat: WALK_SEED=" + std::to_string(seed));
    Walk walk(seed);
    for (int step = 0; step < kSteps && !walk.is_broken(); ++step) walk.Stir();
    if (!walk.is_broken()) walk.Settle();
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace muster
