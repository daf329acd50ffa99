#ifndef MUSTER_WORKER_SDK_DATA_SPLIT_H_
#define MUSTER_WORKER_SDK_DATA_SPLIT_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

// What the DistributedSamplers of this process handed out, for the check. No LibTorch here. Nothing
// is kept per index: what was handed out follows from a pass's numbers, and whether it is right
// from sums of hashes.
namespace muster {

// Whose indices a sampler hands out, and from where on: rank `rank` of `ranks` takes
// order[base + rank], order[base + ranks + rank] … of the epoch's order.
struct Slice {
  size_t n = 0, rank = 0, ranks = 1;
  uint64_t seed = 0;
  bool shuffle = false;
  size_t epoch = 0, base = 0;
};

// One walk through an epoch, or through a part of it.
struct Pass {
  Slice slice;
  uint64_t number = 0;      // of the sampler's passes
  size_t from = 0, to = 0;  // which of this rank's indices were handed out
  bool closed = false;      // the next index begins another pass
  uint64_t handed_out = 0;  // sum of the hashes of what this rank got, without what fills up
  uint64_t all_handed = 0;  // the same of what all ranks together must have got
};

// The passes of one sampler that are not compared yet, the last 16 of them. Thread-safe.
class PassLog {
 public:
  // This rank got `batch`, which are its indices number `from` and on.
  void Add(const Slice& slice, const std::vector<int64_t>& order, size_t from,
           const std::vector<size_t>& batch);
  void Close();                  // the pass, if there is one
  void Forget(uint64_t number);  // a closed one
  std::vector<Pass> passes() const;

 private:
  mutable std::mutex mutex_;
  std::deque<Pass> passes_;
  uint64_t next_ = 0;
};

// Logs are kept, and samplers asked to write them, from here on.
void RecordPasses();
bool PassesAreRecorded();
// A new one for a sampler of one of `ranks` ranks. The process keeps it while it has passes.
std::shared_ptr<PassLog> NewPassLog(size_t ranks);
// Those that are for so many ranks, in the order in which they were made, by number.
std::vector<std::pair<uint64_t, std::shared_ptr<PassLog>>> PassLogsFor(size_t ranks);

// The order of all n indices in an epoch. In sampler.cc.
std::vector<int64_t> EpochOrder(size_t n, uint64_t seed, bool shuffle, size_t epoch);

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_DATA_SPLIT_H_
