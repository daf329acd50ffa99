#ifndef MUSTER_DDP_CORE_H_
#define MUSTER_DDP_CORE_H_

#include <muster/ddp_options.h>
#include <muster/world.h>
#include <torch/nn/module.h>

#include <exception>
#include <memory>
#include <string>
#include <vector>

namespace muster {

// The part of DistributedDataParallel that does not depend on the module's type.
class DDPCore {
 public:
  DDPCore(std::shared_ptr<torch::nn::Module> module, World world, DDPOptions options);
  ~DDPCore();
  DDPCore(const DDPCore&) = delete;
  DDPCore& operator=(const DDPCore&) = delete;

  bool wants_inputs() const;  // before_forward() looks at what goes into the forward
  void before_forward(const std::vector<at::Tensor>& inputs);
  void after_forward(const std::vector<at::Tensor*>& outputs);
  [[noreturn]] void fail_forward(const std::exception& error);  // within its handler
  void backward(const at::Tensor& loss);
  std::shared_ptr<void> forward_scope() const;  // lives while the module's forward runs
  double clip_grad_norm(double max_norm, double norm_type) const;
  void set_sync(bool sync);
  bool sync() const;
  void zero_grad(bool set_to_none);
  double max_parameter_difference() const;
  void check_consistency(double atol) const;
  double max_gradient_difference(const at::Tensor& reference_loss) const;
  void begin_join(const JoinOptions& options);
  void shadow_others();
  void end_join();
  Stats stats() const;
  const World& world() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// While one lives, backward() accumulates gradients on this rank and sends nothing; the first step
// without one averages all that was accumulated. The forward must be inside too.
class NoSync {
 public:
  // See DistributedDataParallel::no_sync(). Without `skip` it changes nothing.
  NoSync(DDPCore& core, bool skip) : core_(core), before_(core.sync()) {
    if (skip) core_.set_sync(false);
  }
  ~NoSync() { core_.set_sync(before_); }
  NoSync(const NoSync&) = delete;
  NoSync& operator=(const NoSync&) = delete;

 private:
  DDPCore& core_;
  bool before_;
};

}  // namespace muster

#endif  // MUSTER_DDP_CORE_H_
