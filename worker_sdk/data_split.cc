#include "worker_sdk/data_split.h"

#include <algorithm>
#include <atomic>

namespace muster {
namespace {

constexpr size_t kPassesKept = 16;

// SplitMix64, so that the sums of two sets of indices are hardly ever the same.
uint64_t HashOf(uint64_t index) {
  uint64_t x = index + 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

struct Registered {
  size_t ranks;
  uint64_t number;
  std::shared_ptr<PassLog> log;
};

struct Registry {
  std::mutex mutex;
  std::vector<Registered> logs;
  std::vector<std::pair<size_t, uint64_t>> counts;  // by ranks: how many there were
  std::atomic<bool> on = false;
};

Registry& TheRegistry() {
  static Registry registry;
  return registry;
}

}  // namespace

void PassLog::Add(const Slice& slice, const std::vector<int64_t>& order, size_t from,
                  const std::vector<size_t>& batch) {
  const std::lock_guard lock(mutex_);
  if (passes_.empty() || passes_.back().closed) {
    passes_.push_back({slice, next_++, from, from, false, 0, 0});
    if (passes_.size() > kPassesKept) passes_.pop_front();
  }
  Pass& pass = passes_.back();
  for (const size_t index : batch) {
    const size_t first = slice.base + pass.to++ * slice.ranks;
    const size_t end = std::min(first + slice.ranks, slice.n);
    for (size_t i = first; i < end; ++i) pass.all_handed += HashOf(static_cast<uint64_t>(order[i]));
    if (first + slice.rank < slice.n) pass.handed_out += HashOf(index);
  }
}

void PassLog::Close() {
  const std::lock_guard lock(mutex_);
  if (!passes_.empty()) passes_.back().closed = true;
}

void PassLog::Forget(uint64_t number) {
  const std::lock_guard lock(mutex_);
  std::erase_if(passes_, [&](const Pass& pass) { return pass.number == number && pass.closed; });
}

std::vector<Pass> PassLog::passes() const {
  const std::lock_guard lock(mutex_);
  return {passes_.begin(), passes_.end()};
}

void RecordPasses() { TheRegistry().on = true; }
bool PassesAreRecorded() { return TheRegistry().on; }

std::shared_ptr<PassLog> NewPassLog(size_t ranks) {
  Registry& registry = TheRegistry();
  const std::lock_guard lock(registry.mutex);
  std::erase_if(registry.logs, [](const Registered& one) {
    return one.log.use_count() == 1 && one.log->passes().empty();
  });
  auto count = std::find_if(registry.counts.begin(), registry.counts.end(),
                            [&](const auto& one) { return one.first == ranks; });
  if (count == registry.counts.end()) count = registry.counts.insert(count, {ranks, 0});
  registry.logs.push_back({ranks, count->second++, std::make_shared<PassLog>()});
  return registry.logs.back().log;
}

std::vector<std::pair<uint64_t, std::shared_ptr<PassLog>>> PassLogsFor(size_t ranks) {
  Registry& registry = TheRegistry();
  const std::lock_guard lock(registry.mutex);
  std::vector<std::pair<uint64_t, std::shared_ptr<PassLog>>> found;
  for (const Registered& one : registry.logs) {
    if (one.ranks == ranks) found.emplace_back(one.number, one.log);
  }
  return found;
}

}  // namespace muster
