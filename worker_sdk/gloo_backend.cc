#include "worker_sdk/gloo_backend.h"

// The one file that includes it, and with it the declarations in third_party/gloo.
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "worker_sdk/host_sum.h"

namespace muster {
namespace {

// LibTorch's own cannot be closed while somebody else refers to it.
class Gloo : public c10d::ProcessGroupGloo {
 public:
  using ProcessGroupGloo::ProcessGroupGloo;
  void SumIn(std::shared_ptr<HostMemory> memory) {
    sum_ = std::make_unique<HostSum>(std::move(memory));
  }
  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>& tensors,
                                           const c10d::AllreduceOptions& options) override {
    if (!sum_ || tensors.size() != 1 || options.reduceOp != c10d::ReduceOp::SUM ||
        !HostSum::Takes(tensors[0])) {
      return ProcessGroupGloo::allreduce(tensors, options);
    }
    const bool has_own = options.timeout != c10d::kUnsetTimeout;
    return sum_->Start(tensors[0], has_own ? options.timeout : options_->timeout);
  }
  void abort() override {
    if (sum_) sum_->Close();
    for (const auto& context : contexts_) context->closeConnections();
  }
  void SetTimeout(std::chrono::milliseconds timeout) {
    options_->timeout = timeout;
    for (const auto& context : contexts_) context->setTimeout(timeout);
  }

 private:
  std::unique_ptr<HostSum> sum_;
};

}  // namespace

c10::intrusive_ptr<c10d::Backend> MakeGlooBackend(const c10::intrusive_ptr<c10d::Store>& store,
                                                  int rank, int size,
                                                  std::chrono::milliseconds timeout,
                                                  const GlooAddress& address,
                                                  std::shared_ptr<HostMemory> memory) {
  const auto options = Gloo::Options::create(timeout);
  if (!address.interface.empty()) {
    options->devices = {Gloo::createDeviceForInterface(address.interface)};
  } else if (!address.host.empty()) {
    options->devices = {Gloo::createDeviceForHostname(address.host)};
  } else {
    options->devices = {Gloo::createDefaultDevice()};
  }
  auto gloo = c10::make_intrusive<Gloo>(store, rank, size, options);
  if (memory) gloo->SumIn(std::move(memory));
  return gloo;
}

void SetGlooTimeout(c10d::Backend& gloo, std::chrono::milliseconds timeout) {
  static_cast<Gloo&>(gloo).SetTimeout(timeout);
}

}  // namespace muster
