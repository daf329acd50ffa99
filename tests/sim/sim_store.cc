#include "tests/sim/sim_store.h"

#include <utility>

namespace muster::sim {

using namespace std::chrono_literals;

void SimStore::Write(std::vector<RecordChange> changes, std::function<void(absl::Status)> answer) {
  under_way_ = std::move(changes);
  const bool is_calm = world_.queue.now() >= world_.faults_end;
  const bool fails = !is_calm && world_.random.Chance(options_.fails);
  const bool is_made = !fails || world_.random.Chance(0.5);
  const Duration made_after = world_.random.Between(0us, options_.slowest);
  const Duration told_after = made_after + world_.random.Between(0us, options_.slowest);
  world_.queue.After(made_after, [this, is_made, life = lives_] {
    if (life == lives_ && is_made) kept_.Make(std::exchange(under_way_, {}));
  });
  world_.queue.After(told_after, [this, fails, life = lives_, answer = std::move(answer)] {
    if (life != lives_) return;
    under_way_.clear();
    answer(fails ? absl::UnavailableError("the simulated disk is away") : absl::OkStatus());
  });
  if (is_calm || !world_.random.Chance(options_.is_the_end)) return;
  world_.queue.After(world_.random.Between(0us, told_after), [this, life = lives_] {
    if (life == lives_ && world_.queue.now() < world_.faults_end) kill_();
  });
}

void SimStore::Abandon() {
  ++lives_;
  for (const RecordChange& change : std::exchange(under_way_, {})) {
    if (world_.random.Chance(0.5)) kept_.Make({change});
  }
}

}  // namespace muster::sim
