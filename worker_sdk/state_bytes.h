#ifndef MUSTER_WORKER_SDK_STATE_BYTES_H_
#define MUSTER_WORKER_SDK_STATE_BYTES_H_

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <string>
#include <string_view>

// Modules, optimizers and random numbers to bytes and back. The Check functions throw
// CheckpointError, and change nothing, if the bytes are not of such a thing.
namespace muster {

std::string ModuleBytes(const torch::nn::Module& module);
void CheckModule(const torch::nn::Module& module, std::string_view bytes);
void RestoreModule(torch::nn::Module& module, std::string_view bytes);  // in place

std::string OptimizerBytes(const torch::optim::Optimizer& optimizer);
void CheckOptimizer(const torch::optim::Optimizer& optimizer, std::string_view bytes);
void RestoreOptimizer(torch::optim::Optimizer& optimizer, std::string_view bytes);

// The default generators of the CPU and, if `device` is a GPU, of it: always the same number of
// bytes.
at::Tensor RandomState(const at::Device& device);
void RestoreRandom(const at::Device& device, const at::Tensor& state);

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_STATE_BYTES_H_
