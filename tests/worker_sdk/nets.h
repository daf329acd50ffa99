#ifndef MUSTER_TESTS_WORKER_SDK_NETS_H_
#define MUSTER_TESTS_WORKER_SDK_NETS_H_

#include <ATen/ATen.h>
#include <muster/torch.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <chrono>
#include <memory>
#include <vector>

namespace muster {

// The group of a test's ranks, which share few cores.
inline World Join(const InitOptions& options) {
  at::set_num_threads(1);
  return init(options);
}
inline World Join(std::chrono::milliseconds op_timeout = std::chrono::seconds(30)) {
  return Join(InitOptions().op_timeout(op_timeout));
}

// Parameters from a formula.
inline void Fill(torch::nn::Module& module) {
  const at::NoGradGuard no_grad;
  int64_t k = 0;
  for (at::Tensor& parameter : module.parameters()) {
    const at::Tensor values = at::arange(parameter.numel(), at::kFloat) + k++;
    parameter.copy_((at::sin(values) * 0.5).reshape(parameter.sizes()));
  }
}

// 6-5-3.
struct SmallNet : torch::nn::Module {
  SmallNet() { Fill(*this); }
  at::Tensor forward(const at::Tensor& x) { return fc2(at::relu(fc1(x))); }
  torch::nn::Linear fc1 = register_module("fc1", torch::nn::Linear(6, 5));
  torch::nn::Linear fc2 = register_module("fc2", torch::nn::Linear(5, 3));
};

struct Batch {
  at::Tensor x, y;
};

constexpr int64_t kBatch = 8;

// What rank `rank` sees in step `step`.
inline Batch BatchOf(int64_t step, int64_t rank) {
  const int64_t start = (step * 16 + rank) * kBatch;
  return {at::cos(at::arange(start * 6, (start + kBatch) * 6).to(at::kFloat)).reshape({kBatch, 6}),
          at::arange(start, start + kBatch).remainder(3)};
}

// What all ranks see together.
inline Batch JoinedBatch(int64_t step, int64_t ranks) {
  std::vector<at::Tensor> x, y;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    x.push_back(BatchOf(step, rank).x);
    y.push_back(BatchOf(step, rank).y);
  }
  return {at::cat(x), at::cat(y)};
}

inline at::Tensor Loss(const at::Tensor& output, const at::Tensor& target) {
  return torch::nn::functional::cross_entropy(output, target);
}

inline at::Tensor Flat(const torch::nn::Module& module) {
  std::vector<at::Tensor> all;
  for (const at::Tensor& parameter : module.parameters())
    all.push_back(parameter.detach().flatten());
  return at::cat(all);
}

inline at::Tensor FlatGrad(const torch::nn::Module& module) {
  std::vector<at::Tensor> all;
  for (const at::Tensor& parameter : module.parameters()) {
    const at::Tensor& gradient = parameter.grad();
    all.push_back((gradient.defined() ? gradient : at::zeros_like(parameter)).flatten());
  }
  return at::cat(all);
}

// The gradients of one process on the joined batch: what each rank must have after that step.
inline at::Tensor ReferenceGradient(int64_t step, int64_t ranks) {
  SmallNet net;
  const Batch joined = JoinedBatch(step, ranks);
  Loss(net.forward(joined.x), joined.y).backward();
  return FlatGrad(net);
}

inline double Distance(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

}  // namespace muster

#endif  // MUSTER_TESTS_WORKER_SDK_NETS_H_
