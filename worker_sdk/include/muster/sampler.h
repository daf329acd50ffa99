#ifndef MUSTER_SAMPLER_H_
#define MUSTER_SAMPLER_H_

#include <muster/world.h>
#include <torch/data/samplers/base.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

// Python's, with its defaults.
struct SamplerOptions {
  TORCH_ARG(bool, shuffle) = true;  // false: 0, 1, 2 …
  TORCH_ARG(uint64_t, seed) = 0;    // the order is that of seed + epoch
  TORCH_ARG(bool,
            drop_last) = false;  // leave out the tail instead of repeating samples to make it even
};

// This rank's share of the indices 0 … n-1, in the order of Python's
// torch.utils.data.DistributedSampler, index for index. Copies share their state, so set_epoch()
// reaches the copy that a DataLoader holds. One thread at a time, apart from what a DataLoader
// does.
class DistributedSampler : public torch::data::samplers::Sampler<> {
 public:
  // Of n indices those of this rank of `world`, or of `rank` of `ranks`.
  DistributedSampler(size_t n, const World& world, SamplerOptions options = {});
  DistributedSampler(size_t n, int rank, int ranks, SamplerOptions options = {});

  // Call it before each epoch. A new epoch begins at its start; the current one keeps its position.
  void set_epoch(size_t epoch);
  size_t epoch() const;
  size_t size() const;       // indices that this rank gets per epoch
  size_t remaining() const;  // of those of the current epoch, the ones not yet consumed
  // This rank has trained on `local` more samples. Needed for resuming only: loaders read ahead, so
  // that what was handed out says little.
  void consumed(size_t local);

  // What this rank still has to see in this epoch, and how many of the first entries of the epoch's
  // order over all ranks are trained on. Both are the same before and after a restart with another
  // number of ranks.
  std::vector<size_t> indices() const;
  size_t position() const;

  // For DataLoader. reset() goes back to what is consumed, or to the start of the epoch when all
  // is.
  void reset(std::optional<size_t> new_size = std::nullopt) override;
  std::optional<std::vector<size_t>> next(size_t batch_size) override;
  void save(torch::serialize::OutputArchive& archive) const override;
  void load(torch::serialize::InputArchive& archive) override;

  // For State: epoch and position, as a few bytes. check() and restore() throw CheckpointError if
  // they are of another data set, seed, or kind of order.
  std::string snapshot() const;
  void check(std::string_view bytes) const;
  void restore(std::string_view bytes);

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace muster

#endif  // MUSTER_SAMPLER_H_
