#include "examples/shared/stepper.h"

#include <string>
#include <utility>

namespace examples {
namespace {

std::unique_ptr<muster::Schedule> MakeSchedule(torch::optim::Optimizer& optimizer,
                                               const StepOptions& options, int64_t steps) {
  if (options.warmup >= steps) {
    throw UsageError("--warmup " + std::to_string(options.warmup) +
                     " is too long for a training of " + std::to_string(steps) +
                     (steps == 1 ? " step" : " steps"));
  }
  if (options.cosine) {
    return std::make_unique<muster::Cosine>(optimizer, steps,
                                            muster::CosineOptions().warmup(options.warmup));
  }
  if (options.warmup > 0) return std::make_unique<muster::Warmup>(optimizer, options.warmup);
  return nullptr;
}

}  // namespace

double Rate(const muster::World& world, const StepOptions& options) {
  return options.scale_lr ? muster::linear_scaled_lr(options.lr, world) : options.lr;
}

Stepper::Stepper(const muster::World& world, torch::optim::Optimizer& optimizer,
                 StepOptions options, int64_t steps)
    : world_(world),
      options_(std::move(options)),
      optimizer_(optimizer),
      scaler_(world, muster::GradScalerOptions().enabled(options_.scaler)),
      schedule_(MakeSchedule(optimizer, options_, steps)) {}

void Stepper::Remember(muster::State& state) {
  if (options_.scaler) state.add("scaler", scaler_);
  if (schedule_) state.add("schedule", *schedule_);
}

void Stepper::CatchUp(int64_t steps) {
  while (schedule_ && schedule_->steps() < steps) schedule_->step();
}

}  // namespace examples
