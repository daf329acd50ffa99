// libmuster_nccl.so: the only file that knows NCCL and CUDA.
#include <ATen/cuda/CUDAContextLight.h>
#include <c10/cuda/CUDAFunctions.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "worker_sdk/failure.h"
#include "worker_sdk/nccl_component.h"

namespace {

int DeviceFor(int local_rank) {
  const int count = c10::cuda::device_count();
  if (count == 0) throw std::runtime_error("no GPU is visible to this process");
  if (local_rank < count) return local_rank;
  if (count == 1) return 0;  // the launcher showed each worker its own
  throw std::runtime_error("local rank " + std::to_string(local_rank) + " has no GPU, " +
                           std::to_string(count) + " are visible: start fewer workers per node");
}

}  // namespace

extern "C" c10d::Backend* muster_nccl_open(const MusterNcclRequest* request, int* device,
                                           char* error, size_t error_size) {
  try {
    *device = DeviceFor(request->local_rank);
    c10::cuda::set_device(static_cast<c10::DeviceIndex>(*device));
    // Errors must come out of wait() as exceptions. LibTorch's default, and the value that torchrun
    // sets, end the process.
    setenv("TORCH_NCCL_ASYNC_ERROR_HANDLING", "2", 1);
    setenv("TORCH_NCCL_ENABLE_MONITORING", "0", 1);
    auto options = c10d::ProcessGroupNCCL::Options::create();
    options->timeout = std::chrono::milliseconds(request->timeout_ms);
    auto store = c10::intrusive_ptr<c10d::Store>::reclaim_copy(request->store);
    auto group = c10::make_intrusive<c10d::ProcessGroupNCCL>(store, request->rank, request->size,
                                                             std::move(options));
    group->setBoundDeviceId(at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(*device)));
    return group.release();
  } catch (const c10::Error& e) {
    std::snprintf(error, error_size, "%s", muster::FirstLine(e.what_without_backtrace()).c_str());
  } catch (const std::exception& e) {
    std::snprintf(error, error_size, "%s", muster::FirstLine(e.what()).c_str());
  }
  return nullptr;
}
