#ifndef MUSTER_WORKER_SDK_SPLIT_CHECK_H_
#define MUSTER_WORKER_SDK_SPLIT_CHECK_H_

#include <muster/world.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "worker_sdk/data_split.h"

namespace muster {

// Whether the ranks' samplers handed out no index twice. The usual answer takes four numbers from
// each rank: what the passes are, their sums, and how many there are.
class SplitCheck {
 public:
  explicit SplitCheck(const World& world);

  using Digest = std::array<int64_t, 4>;
  Digest Own() const;
  // Collective, with the ranks' digests. Throws Mismatch, on every rank with the same text, that
  // names the first index that was handed out twice, to whom, and how the samplers differ. Passes
  // that are not at the same place on all ranks are left for later, and those that only some ranks
  // have.
  void Judge(const std::vector<Digest>& digests);

  // What was compared last, for people. Empty: nothing yet.
  const std::string& answer() const { return answer_; }

 private:
  struct Entry {
    std::shared_ptr<PassLog> log;
    uint64_t sampler = 0;
    Pass pass;
  };
  std::vector<Entry> Entries() const;
  void Settle(const std::vector<Entry>& compared);
  void CompareExactly(const std::vector<Entry>& own, int64_t most);
  void RequireNoneTwice(const Entry& own, const std::vector<Slice>& slices) const;

  World world_;
  std::string answer_;
};

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_SPLIT_CHECK_H_
