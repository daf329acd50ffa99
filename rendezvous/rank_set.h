#ifndef MUSTER_RENDEZVOUS_RANK_SET_H_
#define MUSTER_RENDEZVOUS_RANK_SET_H_

#include <cstddef>
#include <map>
#include <vector>

namespace muster {

// Ranks from 0, kept as runs: the first few that are in it, or are not, are found at once however
// many there are. Pure.
class RankSet {
 public:
  bool Contains(int rank) const;
  void Add(int rank);
  void Remove(int rank);
  void Clear();
  size_t size() const { return size_; }

  // The first `count` of its ranks.
  std::vector<int> First(size_t count) const;
  // The first `count` ranks below `end` that are not in it.
  std::vector<int> FirstMissing(int end, size_t count) const;

 private:
  std::map<int, int> runs_;  // first rank → the one behind the last
  size_t size_ = 0;
};

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_RANK_SET_H_
