#ifndef MUSTER_EXAMPLES_CNN_NET_H_
#define MUSTER_EXAMPLES_CNN_NET_H_

#include <ATen/ATen.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

// A residual network as one would write it for one process. Nothing of muster is in it.
namespace cnn {

inline torch::nn::Conv2d Conv(int64_t in, int64_t out, int64_t size, int64_t stride) {
  return torch::nn::Conv2d(
      torch::nn::Conv2dOptions(in, out, size).stride(stride).padding(size / 2).bias(false));
}

struct Block : torch::nn::Module {
  Block(int64_t in, int64_t out, int64_t stride)
      : conv1(register_module("conv1", Conv(in, out, 3, stride))),
        conv2(register_module("conv2", Conv(out, out, 3, 1))),
        shortcut(register_module("shortcut", Conv(in, out, 1, stride))),
        norm1(register_module("norm1", torch::nn::BatchNorm2d(out))),
        norm2(register_module("norm2", torch::nn::BatchNorm2d(out))) {}

  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor y = norm2(conv2(at::relu(norm1(conv1(x)))));
    return at::relu(y + shortcut(x));
  }

  torch::nn::Conv2d conv1, conv2, shortcut;
  torch::nn::BatchNorm2d norm1, norm2;
};

struct Net : torch::nn::Module {
  at::Tensor forward(const at::Tensor& pictures) {
    at::Tensor x = at::relu(norm(conv(pictures.view({-1, 1, 28, 28}))));
    x = block3->forward(block2->forward(block1->forward(x)));
    return classes(x.mean({2, 3}));
  }

  torch::nn::Conv2d conv = register_module("conv", Conv(1, 8, 3, 2));
  torch::nn::BatchNorm2d norm = register_module("norm", torch::nn::BatchNorm2d(8));
  std::shared_ptr<Block> block1 = register_module("block1", std::make_shared<Block>(8, 8, 1));
  std::shared_ptr<Block> block2 = register_module("block2", std::make_shared<Block>(8, 16, 2));
  std::shared_ptr<Block> block3 = register_module("block3", std::make_shared<Block>(16, 32, 2));
  torch::nn::Linear classes = register_module("classes", torch::nn::Linear(32, 10));
};

}  // namespace cnn

#endif  // MUSTER_EXAMPLES_CNN_NET_H_
