#ifndef MUSTER_EXAMPLES_SHARED_STEPPER_H_
#define MUSTER_EXAMPLES_SHARED_STEPPER_H_

#include <muster/torch.h>

#include <algorithm>
#include <memory>

#include "examples/shared/step_options.h"

namespace examples {

inline int64_t Quotient(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The learning rate to begin with.
double Rate(const muster::World& world, const StepOptions& options);

// From batches to steps of the optimizer: lower precision, gradients accumulated over several
// batches, clipping, the learning rate's course. One thread; all that trains is collective.
//
//   stepper.Begin(batches);
//   for (batch : loader) {
//     loss = stepper.Accumulate(ddp, [&] { return Loss(ddp(batch.pictures), batch.labels); });
//     if (stepper.Complete()) stepper.Step(ddp);
//   }
class Stepper {
 public:
  // Of a training of `steps` steps. It keeps a reference to the optimizer. Throws UsageError if the
  // warm-up is no shorter than that.
  Stepper(const muster::World& world, torch::optim::Optimizer& optimizer, StepOptions options,
          int64_t steps);

  // What a run that goes on must get back; to be called after the optimizer was added.
  void Remember(muster::State& state);

  // A part of an epoch begins, in which this rank has so many batches.
  void Begin(int64_t batches) {
    left_ = batches;
    missing_ = 0;
  }

  // Forward and backward of one batch. The mean over the batches of a step is what counts. Returns
  // the batch's own loss.
  template <class M, class F>
  at::Tensor Accumulate(muster::DistributedDataParallel<M>& ddp, F&& loss) {
    if (Complete()) {
      ddp.zero_grad();
      window_ = missing_ = std::min(options_.accumulate, left_);
    }
    --left_;
    --missing_;
    const auto skip =
        ddp.no_sync(!Complete());  // the last batch of a step sends what all have left
    at::Tensor value;
    {
      const muster::Autocast autocast(world_.device(), Precision(), !options_.amp.empty());
      value = loss();
    }
    ddp.backward(scaler_.scale(value / window_));
    return value.detach();
  }

  // The step has all its batches.
  bool Complete() const { return missing_ == 0; }

  // Averaged gradients to parameters. With a scaler no rank steps if one has an inf or NaN.
  template <class M>
  void Step(muster::DistributedDataParallel<M>& ddp) {
    if (options_.clip > 0) {
      scaler_.unscale(optimizer_);
      ddp.clip_grad_norm(options_.clip);
    }
    const bool stepped = scaler_.step(optimizer_);
    scaler_.update();
    if (stepped && schedule_) schedule_->step();
  }

  // For a rank that had fewer batches than others: the learning rate after so many steps.
  void CatchUp(int64_t steps);

 private:
  at::ScalarType Precision() const { return options_.amp == "fp16" ? at::kHalf : at::kBFloat16; }

  muster::World world_;
  StepOptions options_;
  torch::optim::Optimizer& optimizer_;
  muster::GradScaler scaler_;                   // does nothing unless it is switched on
  std::unique_ptr<muster::Schedule> schedule_;  // null: the learning rate stays
  int64_t left_ = 0;                            // batches of this epoch
  int64_t window_ = 0, missing_ = 0;            // batches of this step, and those yet to come
};

}  // namespace examples

#endif  // MUSTER_EXAMPLES_SHARED_STEPPER_H_
