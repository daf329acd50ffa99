#include "rendezvous/rank_set.h"

#include <iterator>

namespace muster {

bool RankSet::Contains(int rank) const {
  const auto after = runs_.upper_bound(rank);
  return after != runs_.begin() && rank < std::prev(after)->second;
}

void RankSet::Add(int rank) {
  if (Contains(rank)) return;
  ++size_;
  int end = rank + 1;
  if (const auto next = runs_.find(end); next != runs_.end()) {
    end = next->second;
    runs_.erase(next);
  }
  const auto after = runs_.upper_bound(rank);
  if (after != runs_.begin() && std::prev(after)->second == rank) {
    std::prev(after)->second = end;
  } else {
    runs_[rank] = end;
  }
}

void RankSet::Remove(int rank) {
  if (!Contains(rank)) return;
  --size_;
  const auto run = std::prev(runs_.upper_bound(rank));
  const auto [first, end] = *run;
  run->second = rank;
  if (first == rank) runs_.erase(run);
  if (rank + 1 < end) runs_[rank + 1] = end;
}

void RankSet::Clear() {
  runs_.clear();
  size_ = 0;
}

std::vector<int> RankSet::First(size_t count) const {
  std::vector<int> ranks;
  for (const auto& [first, end] : runs_) {
    for (int rank = first; rank < end && ranks.size() < count; ++rank) ranks.push_back(rank);
    if (ranks.size() == count) break;
  }
  return ranks;
}

std::vector<int> RankSet::FirstMissing(int end, size_t count) const {
  std::vector<int> ranks;
  int next = 0;
  for (auto run = runs_.begin(); next < end && ranks.size() < count;) {
    if (run != runs_.end() && run->first == next) {
      next = (run++)->second;
    } else {
      ranks.push_back(next++);
    }
  }
  return ranks;
}

}  // namespace muster
