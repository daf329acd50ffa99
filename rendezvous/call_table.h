#ifndef MUSTER_RENDEZVOUS_CALL_TABLE_H_
#define MUSTER_RENDEZVOUS_CALL_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/mutex.h"

namespace muster {

// The calls of one service that are under way, each by its number; keeps them alive. A call takes
// itself out when gRPC is done with it. Thread-safe.
template <typename Call>
class CallTable {
 public:
  uint64_t NextId() {
    MutexLock lock(&mutex_);
    return ++last_id_;
  }

  // False: CloseAll() has been called; the call is in the table all the same.
  bool Add(uint64_t id, std::shared_ptr<Call> call) {
    MutexLock lock(&mutex_);
    calls_[id] = std::move(call);
    return !is_closed_;
  }

  // nullptr: it is gone.
  std::shared_ptr<Call> Find(uint64_t id) {
    MutexLock lock(&mutex_);
    const auto found = calls_.find(id);
    return found == calls_.end() ? nullptr : found->second;
  }

  size_t size() {
    MutexLock lock(&mutex_);
    return calls_.size();
  }

  // Calls `end` with each call that is there now.
  template <typename End>
  void CloseAll(const End& end) {
    std::vector<std::shared_ptr<Call>> all;
    {
      MutexLock lock(&mutex_);
      is_closed_ = true;
      for (const auto& [id, call] : calls_) all.push_back(call);
    }
    for (const auto& call : all) end(*call);
  }

  void Remove(uint64_t id) {
    std::shared_ptr<Call> last;  // destroyed after the lock is released
    MutexLock lock(&mutex_);
    const auto found = calls_.find(id);
    if (found == calls_.end()) return;
    last = std::move(found->second);
    calls_.erase(found);
  }

 private:
  Mutex mutex_;
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<uint64_t, std::shared_ptr<Call>> calls_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_CALL_TABLE_H_
