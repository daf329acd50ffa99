#include "worker_sdk/gloo_backend.h"

#include <algorithm>
// The one file that includes it, and with it the declarations in third_party/gloo.
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "worker_sdk/host_collectives.h"

namespace muster {
namespace {

// LibTorch's own cannot be closed while somebody else refers to it.
class Gloo : public c10d::ProcessGroupGloo {
 public:
  using ProcessGroupGloo::ProcessGroupGloo;
  using Work = c10::intrusive_ptr<c10d::Work>;
  using Tensors = std::vector<at::Tensor>;

  void ShareMemory(std::shared_ptr<HostMemory> memory) {
    host_ = std::make_unique<HostCollectives>(std::move(memory));
  }

  Work allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override {
    if (host_ && tensors.size() == 1 && options.reduceOp == c10d::ReduceOp::SUM &&
        HostCollectives::Sums(tensors[0])) {
      return host_->AllReduce(tensors[0], TimeoutOf(options));
    }
    return ProcessGroupGloo::allreduce(tensors, options);
  }

  Work broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override {
    if (host_ && tensors.size() == 1 && HostCollectives::Copies(tensors[0])) {
      return host_->Broadcast(tensors[0], static_cast<int>(options.rootRank), TimeoutOf(options));
    }
    return ProcessGroupGloo::broadcast(tensors, options);
  }

  Work allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                 const c10d::AllgatherOptions& options) override {
    const auto fits = [&](const at::Tensor& output) {
      return HostCollectives::Copies(output) && output.nbytes() == inputs[0].nbytes();
    };
    if (host_ && inputs.size() == 1 && outputs.size() == 1 &&
        outputs[0].size() == static_cast<size_t>(size_) && HostCollectives::Copies(inputs[0]) &&
        std::all_of(outputs[0].begin(), outputs[0].end(), fits)) {
      return host_->AllGather(outputs[0], inputs[0], TimeoutOf(options));
    }
    return ProcessGroupGloo::allgather(outputs, inputs, options);
  }

  void abort() override {
    if (host_) host_->Close();
    for (const auto& context : contexts_) context->closeConnections();
  }

  void SetTimeout(std::chrono::milliseconds timeout) {
    options_->timeout = timeout;
    for (const auto& context : contexts_) context->setTimeout(timeout);
  }

 private:
  template <class Options>
  std::chrono::milliseconds TimeoutOf(const Options& options) const {
    return options.timeout != c10d::kUnsetTimeout ? options.timeout : options_->timeout;
  }

  std::unique_ptr<HostCollectives> host_;
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
  if (memory) gloo->ShareMemory(std::move(memory));
  return gloo;
}

void SetGlooTimeout(c10d::Backend& gloo, std::chrono::milliseconds timeout) {
  static_cast<Gloo&>(gloo).SetTimeout(timeout);
}

}  // namespace muster
