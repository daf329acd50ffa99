#ifndef MUSTER_RENDEZVOUS_DEADLINES_H_
#define MUSTER_RENDEZVOUS_DEADLINES_H_

#include <cstddef>
#include <cstdint>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/time.h"

namespace muster {

// When each of many things is due, and which of them is first: what a job of ten thousand nodes
// asks after every message. Each call takes logarithmic time.
class Deadlines {
 public:
  // kNever: it is not due any more.
  void Set(uint64_t key, Time when) {
    const auto known = when_.find(key);
    if (known != when_.end()) {
      if (known->second == when) return;
      order_.erase({known->second, key});
      when_.erase(known);
    }
    if (when == kNever) return;
    when_.emplace(key, when);
    order_.emplace(when, key);
  }

  void Clear() {
    order_.clear();
    when_.clear();
  }

  size_t size() const { return order_.size(); }
  // kNever when nothing is due.
  Time earliest() const { return order_.empty() ? kNever : order_.begin()->first; }
  // Of what is due earliest; there must be something.
  uint64_t first() const { return order_.begin()->second; }
  // Time::min() when nothing is due.
  Time latest() const { return order_.empty() ? Time::min() : order_.rbegin()->first; }

 private:
  std::set<std::pair<Time, uint64_t>> order_;
  std::unordered_map<uint64_t, Time> when_;
};

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_DEADLINES_H_
