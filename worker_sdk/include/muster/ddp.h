#ifndef MUSTER_DDP_H_
#define MUSTER_DDP_H_

#include <muster/ddp_core.h>
#include <muster/visit_tensors.h>
#include <muster/world.h>
#include <torch/nn/module.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace muster {

// Trains one model on all ranks of a World: after backward() every rank holds the gradients
// averaged over the ranks. M is any torch::nn::Module with a forward(). One thread.
template <class M>
class DistributedDataParallel {
 public:
  // Verifies that all ranks hold the same model and options (else Mismatch, on every rank), gives
  // all of them rank 0's parameters and buffers, and installs hooks on the parameters that require
  // a gradient: freeze before, not after. Throws Error, on every rank, if some rank's module has
  // none, has them on several types of devices, or lacks a name that is to be ignored.
  DistributedDataParallel(std::shared_ptr<M> module, World world, DDPOptions options = {})
      : module_(std::move(module)), core_(module_, std::move(world), std::move(options)) {}

  // module->forward(args…), whose output visit_tensors() can visit. Several forwards may go into
  // one backward. What the module throws ends this rank's part in the group, and the others learn
  // why. With CheckOptions::on it throws Mismatch, on every rank, for a wrong answer.
  template <class... Args>
  auto operator()(Args&&... args) {
    std::vector<at::Tensor> inputs;
    if (core_.wants_inputs()) (collect_tensors(args, inputs), ...);
    core_.before_forward(inputs);
    auto output = run_forward(std::forward<Args>(args)...);
    std::vector<at::Tensor*> tensors;
    visit_tensors(output, [&](at::Tensor& tensor) { tensors.push_back(&tensor); });
    core_.after_forward(tensors);
    return output;
  }

  // loss.backward() works as well. Both throw, in the very step and on every rank, UnusedParameter
  // where a parameter got no gradient although find_unused_parameters is off, and Error for a
  // second backward of one forward. This one throws PeerLost and Timeout as such, too.
  void backward(const at::Tensor& loss) { core_.backward(loss); }

  M* operator->() { return module_.get(); }                     // the module's members
  const std::shared_ptr<M>& module() const { return module_; }  // shared with whoever gave it
  // While what it returns lives, gradients are accumulated and not sent; see NoSync. With
  // static_graph not before the first step: the forward throws Error.
  [[nodiscard]] NoSync no_sync(bool skip = true) { return NoSync(core_, skip); }

  // Collective: runs body(), in which the ranks may have different numbers of batches. A rank that
  // is done with its own takes part in the others' steps with gradients of zero; in the end all get
  // the model of the last one. Each step costs one small all-reduce more.
  template <class F>
  void join(F&& body, const JoinOptions& options = {}) {
    core_.begin_join(options);
    const JoinEnd end{core_};
    std::forward<F>(body)();
    core_.shadow_others();
  }

  // The gradients of all the module's parameters, those that are ignored here, too.
  void zero_grad(bool set_to_none = true) { core_.zero_grad(set_to_none); }
  // Makes the norm of the averaged gradients at most max_norm and returns what it was: the same on
  // every rank. Throws Error within no_sync(), where they are this rank's own.
  double clip_grad_norm(double max_norm, double norm_type = 2) {
    return core_.clip_grad_norm(max_norm, norm_type);
  }

  // Collective: the largest difference of any parameter between any rank and rank 0; NaN counts as
  // infinite unless both have it.
  double max_parameter_difference() const { return core_.max_parameter_difference(); }
  // Collective: throws Mismatch, on every rank, that names the first parameter, in the order of the
  // module, of which the ranks' copies differ by more than `atol`, the ranks, and by how much. With
  // 0 every bit counts, and only a hash per parameter is sent.
  void check_consistency(double atol = 0) const { core_.check_consistency(atol); }
  // Collective: how far the gradients of the last synchronised backward are from those of
  // `reference_loss`, which every rank computed with module() itself (not through this wrapper) on
  // the joined batch. The hooks stay quiet.
  double max_gradient_difference(const at::Tensor& reference_loss) const {
    return core_.max_gradient_difference(reference_loss);
  }
  Stats stats() const { return core_.stats(); }  // this rank's

 private:
  struct JoinEnd {
    DDPCore& core;
    ~JoinEnd() { core.end_join(); }
  };

  template <class... Args>
  auto run_forward(Args&&... args) {
    try {
      const auto scope = core_.forward_scope();
      return module_->forward(std::forward<Args>(args)...);
    } catch (const std::exception& error) {
      core_.fail_forward(error);
    }
  }

  std::shared_ptr<M> module_;
  DDPCore core_;
};

}  // namespace muster

#endif  // MUSTER_DDP_H_
