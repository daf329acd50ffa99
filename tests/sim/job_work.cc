#include "tests/sim/job_work.h"

#include <algorithm>
#include <utility>

namespace muster::sim {

using namespace std::chrono_literals;

std::string GroupKey::ToString() const {
  return "i" + std::to_string(instance) + " g" + std::to_string(generation) + " at " + address +
         ":" + std::to_string(port);
}

void JobWork::Started(int node, const Assignment& assignment, int rank, WorkerHandle handle) {
  const GroupKey key = GroupKey::Of(assignment);
  Group& group = groups_[key];
  if (group.alive.empty()) {
    // A master without memory may use numbers again.
    const uint64_t run = group.run + 1;
    group = Group();
    group.table = assignment;
    group.run = run;
  }
  CheckTable(key, group, assignment, rank);
  group.alive[rank] = Rank{node, std::move(handle)};
  CheckGroups();
  if (IsComplete(group)) Run(key, group);
}

void JobWork::CheckTable(const GroupKey& key, const Group& group, const Assignment& assignment,
                         int rank) {
  // Fixed stores and forgotten numbers together give two groups one key.
  if (options_.fixed_store && options_.forgets) return;
  const Assignment& first = group.table;
  if (first.world_size != assignment.world_size ||
      first.group_world_size != assignment.group_world_size ||
      first.restart_count != assignment.restart_count) {
    world_.Violate("members of " + key.ToString() + " know different tables");
  }
  if (rank < 0 || rank >= assignment.world_size) {
    world_.Violate("rank " + std::to_string(rank) + " in a world of " +
                   std::to_string(assignment.world_size));
  }
  if (group.alive.count(rank) != 0) {
    world_.Violate("two workers hold rank " + std::to_string(rank) + " of " + key.ToString());
  }
  for (const auto& [other, table] : groups_) {
    if (options_.forgets || table.alive.empty() || other == key) continue;
    if (other.instance == key.instance && other.generation == key.generation) {
      world_.Violate("one generation, two stores: " + other.ToString() + " and " + key.ToString());
    }
  }
}

void JobWork::CheckGroups() {
  int with_workers = 0;
  int in_sight = 0;
  for (const auto& [key, group] : groups_) {
    if (group.alive.empty()) continue;
    ++with_workers;
    if (!IsComplete(group) || group.finishes) continue;
    const bool is_cut_off =
        std::all_of(group.alive.begin(), group.alive.end(),
                    [this](const auto& rank) { return options_.is_cut_off(rank.second.node); });
    if (!is_cut_off) ++in_sight;
  }
  if (in_sight > 1) world_.Violate("two groups can make progress:" + LiveGroups());
  if (options_.is_strict && !options_.forgets && with_workers > 1) {
    world_.Violate("strict fencing, and workers run in" + LiveGroups());
  }
}

std::string JobWork::LiveGroups() const {
  std::string names;
  for (const auto& [key, group] : groups_) {
    if (!group.alive.empty()) names += " " + key.ToString();
  }
  return names;
}

void JobWork::Run(const GroupKey& key, Group& group) {
  group.runs = true;
  group.since = world_.queue.now();
  world_.Trace("work", key.ToString() + " is complete");
  Load(group);
  const Duration left = std::max(options_.work - reached_, Duration(500ms));
  world_.queue.After(left, [this, key, run = ++group.run] {
    if (groups_[key].run == run && groups_[key].runs) Finish(key);
  });
  CommitLater(key, group.run);
}

void JobWork::Load(Group& group) {
  group.author = {0, group.table.generation, 1};
  if (saved_by_) group.author = Successor(*saved_by_, group.author);
  group.loaded = ++loads_;
}

void JobWork::CommitLater(const GroupKey& key, uint64_t run) {
  world_.queue.After(options_.commit_gap, [this, key, run] {
    Group& group = groups_[key];
    if (group.run != run || !group.runs) return;
    Commit(key, group);
    if (!group.drains) return CommitLater(key, run);
    world_.Trace("work", key.ToString() + " ends at a commit point");
    reached_ += world_.queue.now() - group.since;
    EndAll(group);
  });
}

void JobWork::Commit(const GroupKey& key, Group& group) {
  if (saved_by_ && BelongsToThePast(group.author, *saved_by_)) {
    return world_.Trace("work", key.ToString() + " may not save any more");
  }
  // A master without memory may begin to count below what it never heard of.
  if (group.loaded < saved_at_load_ && !options_.forgets) {
    world_.Violate("a save of " + key.ToString() + " took the place of one of a later group");
  }
  saved_by_ = group.author;
  saved_at_load_ = group.loaded;
  const auto commit = group.alive.begin()->second.handle.commit;
  commit();
}

void JobWork::Drain(const Assignment& assignment) {
  Group& group = groups_[GroupKey::Of(assignment)];
  if (!group.drains) group.drains = world_.random.Chance(options_.heeds_drain);
}

void JobWork::EndAll(Group& group) {
  group.runs = false;
  group.finishes = true;
  for (const auto& [rank, worker] : group.alive) worker.handle.finish();
}

void JobWork::Finish(const GroupKey& key) {
  Group& group = groups_[key];
  world_.Trace("work", key.ToString() + " is done");
  done_ = true;
  EndAll(group);
}

void JobWork::Ended(const Assignment& assignment, int rank, bool ok) {
  Group& group = groups_[GroupKey::Of(assignment)];
  group.alive.erase(rank);
  if (group.finishes) {
    if (ok && ++group.succeeded == group.table.world_size) succeeded_ = true;
    if (ok) return;
  }
  if (std::exchange(group.runs, false)) {
    ++group.run;
    reached_ += (world_.queue.now() - group.since) * 9 / 10;
  }
  for (const auto& [other, worker] : group.alive) worker.handle.lose_peer();
}

const WorkerHandle* JobWork::AnyWorker(uint64_t choice) const {
  size_t count = 0;
  for (const auto& [key, group] : groups_) count += group.alive.size();
  if (count == 0) return nullptr;
  size_t index = choice % count;
  for (const auto& [key, group] : groups_) {
    for (const auto& [rank, worker] : group.alive) {
      if (index-- == 0) return &worker.handle;
    }
  }
  return nullptr;
}

}  // namespace muster::sim
