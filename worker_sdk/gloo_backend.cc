#include "worker_sdk/gloo_backend.h"

// The one file that includes it, and with it the declarations in third_party/gloo.
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

namespace muster {
namespace {

// LibTorch's own cannot be closed while somebody else refers to it.
class Gloo : public c10d::ProcessGroupGloo {
 public:
  using ProcessGroupGloo::ProcessGroupGloo;
  void abort() override {
    for (const auto& context : contexts_) context->closeConnections();
  }
  void SetTimeout(std::chrono::milliseconds timeout) {
    options_->timeout = timeout;
    for (const auto& context : contexts_) context->setTimeout(timeout);
  }
};

}  // namespace

c10::intrusive_ptr<c10d::Backend> MakeGlooBackend(const c10::intrusive_ptr<c10d::Store>& store,
                                                  int rank, int size,
                                                  std::chrono::milliseconds timeout,
                                                  const GlooAddress& address) {
  const auto options = Gloo::Options::create(timeout);
  if (!address.interface.empty()) {
    options->devices = {Gloo::createDeviceForInterface(address.interface)};
  } else if (!address.host.empty()) {
    options->devices = {Gloo::createDeviceForHostname(address.host)};
  } else {
    options->devices = {Gloo::createDefaultDevice()};
  }
  return c10::make_intrusive<Gloo>(store, rank, size, options);
}

void SetGlooTimeout(c10d::Backend& gloo, std::chrono::milliseconds timeout) {
  static_cast<Gloo&>(gloo).SetTimeout(timeout);
}

}  // namespace muster
