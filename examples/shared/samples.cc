#include "examples/shared/samples.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

namespace examples {
namespace {

// MNIST's own mean and deviation.
constexpr double kMean = 0.1307, kDeviation = 0.3081;

int64_t Lost(const at::Tensor& values) {
  return values.defined() ? values.numel() - at::isfinite(values).sum().item<int64_t>() : 0;
}

}  // namespace

Part UnevenPart(size_t count, int rank, int ranks) {
  const auto r = static_cast<size_t>(rank), n = static_cast<size_t>(ranks);
  const size_t shares = n * (n + 1) / 2;
  if (count < shares) {
    throw UsageError("--join: " + std::to_string(count) + " samples are too few for " +
                     std::to_string(n) + " ranks with parts of different sizes");
  }
  const auto begin = [&](size_t at) { return count * (at * (at + 1) / 2) / shares; };
  return {begin(r), begin(r + 1) - begin(r)};
}

Samples::Samples(const Split& split, const at::Device& device) {
  const int64_t count = split.count;
  at::Tensor bytes = at::empty({count, 784}, at::kByte);
  std::copy(split.pictures.begin(), split.pictures.end(), bytes.data_ptr<uint8_t>());
  pictures = ((bytes.to(at::kFloat) / 255 - kMean) / kDeviation).to(device);
  at::Tensor digits = at::empty({count}, at::kByte);
  std::copy(split.labels.begin(), split.labels.end(), digits.data_ptr<uint8_t>());
  labels = digits.to(at::kLong).to(device);
}

Samples::Samples(at::Tensor pictures, at::Tensor labels)
    : pictures(std::move(pictures)), labels(std::move(labels)) {}

Samples Samples::Pick(const std::vector<size_t>& indices, size_t begin) const {
  const at::Tensor own = at::tensor(std::vector<int64_t>(indices.begin(), indices.end()));
  const at::Tensor chosen = (own + static_cast<int64_t>(begin)).to(labels.device());
  return {pictures.index_select(0, chosen), labels.index_select(0, chosen)};
}

Samples Joined(const muster::World& world, const Samples& own) {
  return Samples(world.all_gather(own.pictures).flatten(0, 1),
                 world.all_gather(own.labels).flatten());
}

void FillShares(const muster::World& world, const std::vector<size_t>& own, size_t begin,
                Answers& answers) {
  const at::Tensor counts = world.all_gather(at::tensor(static_cast<int64_t>(own.size())));
  // Even shares that are too many: the tail is repeated to fill up.
  const auto total = static_cast<size_t>(counts.sum().item<int64_t>());
  const bool filled = counts.eq(counts[0]).all().item<bool>() && total > answers.samples;
  const at::Tensor padded = at::full({counts.max().item<int64_t>()}, -1, at::kLong);
  for (size_t i = 0; i < own.size(); ++i) {
    padded[static_cast<int64_t>(i)] = static_cast<int64_t>(begin + own[i]);
  }
  const at::Tensor all = world.all_gather(padded);
  const auto ranks = static_cast<size_t>(world.size());
  for (size_t rank = 0; rank < ranks; ++rank) {
    answers.shares.emplace_back();
    const auto count = static_cast<size_t>(counts[static_cast<int64_t>(rank)].item<int64_t>());
    for (size_t i = 0; i < count; ++i) {
      if (filled && i * ranks + rank >= answers.samples) continue;
      const auto row = static_cast<int64_t>(rank), column = static_cast<int64_t>(i);
      answers.shares.back().push_back(static_cast<size_t>(all[row][column].item<int64_t>()));
    }
  }
}

// What every rank has, and no more than a batch.
size_t CommonCount(const muster::World& world, size_t own, int64_t batch_size) {
  const at::Tensor count = at::full({}, static_cast<int64_t>(own), at::kLong);
  world.all_reduce(count, muster::Op::min);
  return static_cast<size_t>(std::min(count.item<int64_t>(), batch_size));
}

void CountLost(const muster::World& world, const torch::nn::Module& module, Answers& answers) {
  int64_t lost_parameters = 0, lost_gradients = 0;
  for (const at::Tensor& parameter : module.parameters()) {
    lost_parameters += Lost(parameter);
    lost_gradients += Lost(parameter.grad());
  }
  const at::Tensor lost = at::tensor({lost_parameters, lost_gradients});
  world.all_reduce(lost);
  answers.lost_parameters = lost[0].item<int64_t>();
  answers.lost_gradients = lost[1].item<int64_t>();
}

}  // namespace examples
