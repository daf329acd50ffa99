#ifndef MUSTER_EXAMPLES_SHARED_SAMPLES_H_
#define MUSTER_EXAMPLES_SHARED_SAMPLES_H_

#include <muster/torch.h>
#include <torch/data/datasets/base.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "examples/shared/answers.h"
#include "examples/shared/idx.h"

namespace examples {

// Some of the samples, one after the other.
struct Part {
  size_t begin = 0, count = 0;
};

// Rank r's of `count` samples, in proportion to r + 1; none has none.
// Throws UsageError if they are too few for that.
Part UnevenPart(size_t count, int rank, int ranks);

// Normalised pictures [n, 784] and labels [n], on the device that trains.
struct Samples {
  Samples(const Split& split, const at::Device& device);
  Samples(at::Tensor pictures, at::Tensor labels);
  size_t count() const { return static_cast<size_t>(labels.numel()); }
  // Those with these indices, counted from `begin`, in the same form.
  Samples Pick(const std::vector<size_t>& indices, size_t begin = 0) const;
  at::Tensor pictures, labels;
};

// For a DataLoader: hands out indices, since a batch is one Pick().
struct Indices : torch::data::datasets::Dataset<Indices, size_t> {
  explicit Indices(size_t count) : count(count) {}
  size_t get(size_t index) override { return index; }
  std::optional<size_t> size() const override { return count; }
  size_t count;
};

// All ranks' samples in one batch, as one process would have it. Collective; they have as many.
Samples Joined(const muster::World& world, const Samples& own);

// Parts of Ask(). Collective.
void FillShares(const muster::World& world, const std::vector<size_t>& own, size_t begin,
                Answers& answers);
size_t CommonCount(const muster::World& world, size_t own, int64_t batch_size);
void CountLost(const muster::World& world, const torch::nn::Module& module, Answers& answers);

// Asks the three questions of a model that was trained on `training`. Collective. `own`: this
// rank's indices in an epoch, counted from `begin`. `loss(model, samples)` is computed with the
// wrapper and, for comparison, with the module itself on the joined batch of `batch_size` samples
// of each rank.
template <class M, class F>
Answers Ask(const muster::World& world, muster::DistributedDataParallel<M>& ddp,
            const Samples& training, std::vector<size_t> own, int64_t batch_size, F&& loss,
            size_t begin = 0) {
  Answers answers;
  answers.samples = training.count();
  FillShares(world, own, begin, answers);
  answers.parameter_difference = ddp.max_parameter_difference();

  own.resize(CommonCount(world, own.size(), batch_size));
  const Samples batch = training.Pick(own, begin);
  ddp.zero_grad();
  ddp.backward(loss(ddp, batch));
  const auto alone = [&](const at::Tensor& x) { return ddp.module()->forward(x); };
  answers.gradient_difference = ddp.max_gradient_difference(loss(alone, Joined(world, batch)));
  CountLost(world, *ddp.module(), answers);
  return answers;
}

}  // namespace examples

#endif  // MUSTER_EXAMPLES_SHARED_SAMPLES_H_
