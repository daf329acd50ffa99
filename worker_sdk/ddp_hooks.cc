#include "worker_sdk/ddp_hooks.h"

#include <muster/world.h>

#include <torch/csrc/distributed/c10d/comm.hpp>
#include <utility>

#include "worker_sdk/pending_state.h"

namespace muster {

at::Tensor Bucket::gradients() const { return bucket_.getBuffer(); }
std::vector<at::Tensor> Bucket::per_parameter() const { return bucket_.getGradients(); }
std::vector<at::Tensor> Bucket::parameters() const { return bucket_.getParameters(); }
size_t Bucket::index() const { return bucket_.getIndex(); }
bool Bucket::last() const { return bucket_.isLast(); }

// What Reducer calls, in terms of what the user wrote.
class HookAdapter : public c10d::CppCommHookInterface<CommHook> {
 public:
  HookAdapter(CommHook hook, World world)
      : CppCommHookInterface(std::move(hook)), world_(std::move(world)) {}

  c10::intrusive_ptr<c10::ivalue::Future> runHook(c10d::GradBucket& grad_bucket) override {
    Bucket bucket(grad_bucket);
    const Pending pending = state_.run(world_, bucket);
    const at::Tensor result = bucket.gradients();
    if (!pending.shared_ || !pending.shared_->work) {
      pending.wait();
      auto done = c10::make_intrusive<c10::ivalue::Future>(c10::TensorType::get());
      done->markCompleted(result);
      return done;
    }
    return pending.shared_->work->getFuture()->then(
        [shared = pending.shared_, result](c10::ivalue::Future& future) -> c10::IValue {
          future.value();  // throws what the collective threw
          shared->Finish();
          return result;
        },
        c10::TensorType::get());
  }

 private:
  World world_;
};

std::unique_ptr<c10d::CommHookInterface> AdaptHook(CommHook hook, World world) {
  return std::make_unique<HookAdapter>(std::move(hook), std::move(world));
}

namespace hooks {
namespace {

CommHook Compressed(std::string name, at::ScalarType type) {
  return {std::move(name), [type](const World& world, Bucket& bucket) {
            const at::Tensor gradients = bucket.gradients();
            // Divided before the sum: the sum of many ranks may be too large for the type.
            const at::Tensor compressed = gradients.to(type).div_(world.size());
            return world.all_reduce_async(compressed).then([=] { gradients.copy_(compressed); });
          }};
}

}  // namespace

CommHook allreduce() {
  return {"allreduce", [](const World& world, Bucket& bucket) {
            return world.all_reduce_async(bucket.gradients().div_(world.size()));
          }};
}

CommHook fp16() { return Compressed("fp16", at::kHalf); }
CommHook bf16() { return Compressed("bf16", at::kBFloat16); }

}  // namespace hooks
}  // namespace muster
