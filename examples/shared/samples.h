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

// Normalised pictures [n, 784] and labels [n], on the device that trains.
struct Samples {
  Samples(const Split& split, const at::Device& device);
  Samples(at::Tensor pictures, at::Tensor labels);
  size_t count() const { return static_cast<size_t>(labels.numel()); }
  // Those with these indices, in the same form.
  Samples Pick(const std::vector<size_t>& indices) const;
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
void FillShares(const muster::World& world, const std::vector<size_t>& own, Answers& answers);
void CountLost(const muster::World& world, const torch::nn::Module& module, Answers& answers);

// Asks the three questions of a model that was trained on `training` in the order of `sampling`.
// Collective. `loss(model, samples)` is computed with the wrapper and, for comparison, with the
// module itself on the joined batch of `batch_size` samples of each rank.
template <class M, class F>
Answers Ask(const muster::World& world, muster::DistributedDataParallel<M>& ddp,
            const Samples& training, const muster::SamplerOptions& sampling, int64_t batch_size,
            F&& loss) {
  Answers answers;
  answers.samples = training.count();
  const muster::DistributedSampler fresh(answers.samples, world, sampling);
  std::vector<size_t> own = fresh.indices();
  FillShares(world, own, answers);
  answers.parameter_difference = ddp.max_parameter_difference();

  own.resize(std::min(own.size(), static_cast<size_t>(batch_size)));
  const Samples batch = training.Pick(own);
  ddp.zero_grad();
  ddp.backward(loss(ddp, batch));
  const auto alone = [&](const at::Tensor& x) { return ddp.module()->forward(x); };
  answers.gradient_difference = ddp.max_gradient_difference(loss(alone, Joined(world, batch)));
  CountLost(world, *ddp.module(), answers);
  return answers;
}

}  // namespace examples

#endif  // MUSTER_EXAMPLES_SHARED_SAMPLES_H_
