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

Samples Samples::Pick(const std::vector<size_t>& indices) const {
  const at::Tensor chosen =
      at::tensor(std::vector<int64_t>(indices.begin(), indices.end())).to(labels.device());
  return {pictures.index_select(0, chosen), labels.index_select(0, chosen)};
}

Samples Joined(const muster::World& world, const Samples& own) {
  return Samples(world.all_gather(own.pictures).flatten(0, 1),
                 world.all_gather(own.labels).flatten());
}

void FillShares(const muster::World& world, const std::vector<size_t>& own, Answers& answers) {
  const at::Tensor all = world.all_gather(at::tensor(std::vector<int64_t>(own.begin(), own.end())));
  const auto ranks = static_cast<size_t>(world.size());
  for (size_t rank = 0; rank < ranks; ++rank) {
    answers.shares.emplace_back();
    for (size_t i = 0; i < own.size(); ++i) {
      if (i * ranks + rank >= answers.samples) continue;  // repeated to fill up
      const auto row = static_cast<int64_t>(rank), column = static_cast<int64_t>(i);
      answers.shares.back().push_back(static_cast<size_t>(all[row][column].item<int64_t>()));
    }
  }
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
