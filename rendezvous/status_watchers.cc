#include "rendezvous/status_watchers.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

namespace muster {

bool StatusQuery::operator<(const StatusQuery& other) const {
  return std::tie(job_id, detail, once) < std::tie(other.job_id, other.detail, other.once);
}

bool StatusWatchers::Add(WatcherId id, StatusQuery query, StatusCallback callback) {
  if (watchers_.size() >= kMax) return false;
  watchers_[id] = Watcher{std::move(query), std::move(callback)};
  is_stirred_ = true;
  return true;
}

void StatusWatchers::Resume(WatcherId id) {
  const auto found = watchers_.find(id);
  if (found == watchers_.end()) return;
  found->second.is_waiting = true;
  is_stirred_ = is_stirred_ || found->second.has_news;
}

// Called for every message of every agent, so that it does not look at the watchers.
void StatusWatchers::Changed(const std::string& job_id) {
  if (empty()) return;
  changed_.insert(job_id);
  is_stirred_ = true;
}

// Likewise, for every heartbeat of a job that trains.
void StatusWatchers::Progressed(Time now, const std::string& job_id) {
  if (empty()) return;
  changed_.insert(job_id);
  if (progress_at_ == kNever) progress_at_ = now + kProgressSpacing;
}

void StatusWatchers::AllChanged() {
  for (auto& [id, watcher] : watchers_) watcher.has_news = true;
  is_stirred_ = true;
}

std::map<StatusQuery, std::vector<std::pair<WatcherId, StatusCallback>>> StatusWatchers::TakeDue(
    Time now) {
  std::map<StatusQuery, std::vector<std::pair<WatcherId, StatusCallback>>> due;
  if (now < NextDeadline()) return due;
  for (auto it = watchers_.begin(); it != watchers_.end();) {
    Watcher& watcher = it->second;
    const std::string& job_id = watcher.query.job_id;
    if (job_id.empty() ? !changed_.empty() : changed_.count(job_id) != 0) watcher.has_news = true;
    const bool is_due = watcher.has_news && watcher.is_waiting;
    if (is_due) due[watcher.query].emplace_back(it->first, watcher.callback);
    if (is_due) watcher.has_news = watcher.is_waiting = false;
    it = is_due && watcher.query.once ? watchers_.erase(it) : std::next(it);
  }
  changed_.clear();
  is_stirred_ = false;
  progress_at_ = kNever;
  not_before_ = now + kSpacing;
  return due;
}

void StatusWatchers::Told(Time began, Time now) {
  not_before_ = now + std::max(kSpacing, kPart * (now - began));
}

}  // namespace muster
