#include "rendezvous/failure_memory.h"

#include <algorithm>

namespace muster {

void FailureMemory::Add(const std::string& node_id, Time now, const JobSettings& settings) {
  if (settings.max_node_failures == 0) return;
  // What has become too old for anybody to be excluded for.
  std::erase_if(failures_, [&](const auto& entry) {
    return entry.second.back() + settings.node_failure_window <= now;
  });
  failures_[node_id].push_back(now);
  Exclude(node_id, now, settings);
}

void FailureMemory::Exclude(const std::string& node_id, Time now, const JobSettings& settings) {
  std::deque<Time>& times = failures_[node_id];
  const auto most = static_cast<size_t>(settings.max_node_failures);
  while (times.size() > most) times.pop_front();
  const Time until = times.front() + settings.node_failure_window;
  if (times.size() == most && until > now) excluded_[node_id] = until;
}

std::vector<FailureRecord> FailureMemory::Record() const {
  Time latest = Time::min();
  for (const auto& [id, times] : failures_) latest = std::max(latest, times.back());
  std::vector<FailureRecord> records;
  for (const auto& [id, times] : failures_) {
    records.push_back({id, {}});
    for (const Time time : times) records.back().before_latest.push_back(latest - time);
  }
  return records;
}

void FailureMemory::Restore(const std::vector<FailureRecord>& records, Time now,
                            const JobSettings& settings) {
  if (settings.max_node_failures == 0) return;
  for (const FailureRecord& record : records) {
    for (const Duration before : record.before_latest) {
      failures_[record.node_id].push_back(now - before);
    }
    Exclude(record.node_id, now, settings);
  }
}

Time FailureMemory::NextDeadline() const {
  Time next = kNever;
  for (const auto& [id, until] : excluded_) next = std::min(next, until);
  return next;
}

std::vector<std::string> FailureMemory::Forgive(Time now) {
  std::vector<std::string> forgiven;
  for (auto it = excluded_.begin(); it != excluded_.end();) {
    if (it->second > now) {
      ++it;
      continue;
    }
    forgiven.push_back(it->first);
    it = excluded_.erase(it);
  }
  return forgiven;
}

}  // namespace muster
