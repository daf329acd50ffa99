#include "rendezvous/failure_memory.h"

#include <algorithm>

namespace muster {

void FailureMemory::Add(const std::string& node_id, Time now, const JobSettings& settings) {
  if (settings.max_node_failures == 0) return;
  // What has become too old for anybody to be excluded for.
  std::erase_if(failures_, [&](const auto& entry) {
    return entry.second.back() + settings.node_failure_window <= now;
  });
  std::deque<Time>& times = failures_[node_id];
  times.push_back(now);
  const auto most = static_cast<size_t>(settings.max_node_failures);
  if (times.size() > most) times.pop_front();
  const Time until = times.front() + settings.node_failure_window;
  if (times.size() == most && until > now) excluded_[node_id] = until;
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
