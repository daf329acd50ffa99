#ifndef MUSTER_RENDEZVOUS_STATUS_WATCHERS_H_
#define MUSTER_RENDEZVOUS_STATUS_WATCHERS_H_

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "rendezvous/histogram.h"
#include "rendezvous/job_registry.h"

namespace muster {

using WatcherId = uint64_t;  // never used twice in a process

// How the writes of a master to its store went.
struct StoreCounters {
  Histogram written;
  Histogram failed;
};

// The store cannot be written: what must be kept before it is told waits.
struct StoreTrouble {
  std::string why;  // one sentence
  Duration age{};   // since the first write that failed
};

// What a master tells of its jobs, and of itself.
struct MasterReport {
  std::vector<JobReport> jobs;       // by id
  std::vector<std::string> job_ids;  // all that the master knows, when it does not know the one
                                     // that was asked for
  bool stands_by = false;            // it has no jobs: another master serves
  std::string leader = {};           // that one's "host:port"; empty: not known
  Histogram heartbeat_lag;
  StoreCounters store;
  std::optional<StoreTrouble> store_trouble;
};

// Called by the loop's thread; must not block. Null: there are too many watchers. False: nobody
// wants to hear more.
using StatusCallback = std::function<bool(const std::shared_ptr<const MasterReport>&)>;

// Which jobs somebody wants to hear of.
struct StatusQuery {
  std::string job_id;  // empty: all
  StatusDetail detail = StatusDetail::kFull;
  bool once = false;  // as they are now, and then no more

  bool operator<(const StatusQuery& other) const;
};

// Who watches jobs and when they are told next. However many watch and however often a job changes:
// no more than a small part of the loop's time is spent on it. Pure.
class StatusWatchers {
 public:
  static constexpr size_t kMax = 1024;
  // Nobody is told more often than this,
  static constexpr Duration kSpacing = std::chrono::milliseconds(100);
  // and after telling took long the next time is so many times as far away.
  static constexpr int kPart = 20;
  // How often steps that move are told.
  static constexpr Duration kProgressSpacing = std::chrono::seconds(5);

  // False: there are too many. A new watcher is due at once.
  bool Add(WatcherId id, StatusQuery query, StatusCallback callback);
  // What it was told last has been taken; before that it is told nothing more.
  void Resume(WatcherId id);
  void Remove(WatcherId id) { watchers_.erase(id); }
  bool empty() const { return watchers_.empty(); }

  // Something of the job has changed.
  void Changed(const std::string& job_id);
  // … and no more than how far its workers are: that is told with other news, or once in a while.
  void Progressed(Time now, const std::string& job_id);
  // What has changed is told without waiting: there may be no master any more in a moment.
  void Hurry() { not_before_ = Time::min(); }
  // Something has changed that everybody is told.
  void AllChanged();

  // When TakeDue may have something; kNever: not before a change.
  Time NextDeadline() const {
    if (empty()) return kNever;
    return is_stirred_ ? not_before_ : std::max(progress_at_, not_before_);
  }
  // Those that are to be told now, by what they ask for. Those that asked once are forgotten.
  std::map<StatusQuery, std::vector<std::pair<WatcherId, StatusCallback>>> TakeDue(Time now);
  // They have been told.
  void Told(Time began, Time now);

 private:
  struct Watcher {
    StatusQuery query;
    StatusCallback callback;
    bool has_news = true;
    bool is_waiting = true;  // it can be told something
  };

  std::map<WatcherId, Watcher> watchers_;
  std::set<std::string> changed_;  // jobs, since TakeDue looked at the watchers
  bool is_stirred_ = false;        // something may be due that was not then
  Time progress_at_ = kNever;      // when those in `changed_` that have only progressed are told
  Time not_before_ = Time::min();
};

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_STATUS_WATCHERS_H_
