#ifndef MUSTER_LEARNING_RATE_H_
#define MUSTER_LEARNING_RATE_H_

#include <muster/world.h>
#include <torch/optim/optimizer.h>
#include <torch/optim/schedulers/lr_scheduler.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

// The rate for `reference_world` ranks, for as many as there are: a step over n ranks averages n
// times as many samples. Warm up to a large one.
double linear_scaled_lr(double lr, const World& world, int reference_world = 1);

// A learning rate that follows the number of steps. The optimizer's rates at construction are the
// ones that it starts from; each step() of the optimizer is followed by one of the schedule. It
// keeps a reference to the optimizer.
class Schedule : public torch::optim::LRScheduler {
 public:
  explicit Schedule(torch::optim::Optimizer& optimizer);  // borrowed
  // How often step() was called.
  int64_t steps() const { return static_cast<int64_t>(step_count_) - 1; }

  // For State, which must be given the optimizer before. check() throws CheckpointError.
  std::string snapshot() const;
  void check(std::string_view bytes) const;
  void restore(std::string_view bytes);

 protected:
  // The rate after `steps` steps of a group of parameters that started from `base`.
  virtual double rate(double base, int64_t steps) const = 0;

 private:
  std::vector<double> get_lrs() final;
  std::vector<double> base_;  // by group of parameters
};

// From `from` times the rate to the rate itself, in a line over `steps` steps; then it stays. The
// values of Python's LinearLR.
class Warmup : public Schedule {
 public:
  // `steps`, at least 1; `from` from 0 to 1.
  Warmup(torch::optim::Optimizer& optimizer, int64_t steps, double from = 0.1);

 protected:
  double rate(double base, int64_t steps) const override;

 private:
  int64_t total_;
  double from_;
};

// How a Cosine begins and ends.
struct CosineOptions {
  TORCH_ARG(int64_t, warmup) = 0;  // of the steps: the first ones, as Warmup
  TORCH_ARG(double, from) = 0.1;   // of the rate: where the warm-up begins
  TORCH_ARG(double, min_lr) = 0;   // where it ends
};

// Down to min_lr along half a cosine, over what the warm-up leaves of `steps` steps; then it stays.
// Without warm-up the values of Python's CosineAnnealingLR.
class Cosine : public Schedule {
 public:
  // `steps` counts the warm-up, too.
  Cosine(torch::optim::Optimizer& optimizer, int64_t steps, CosineOptions options = {});

 protected:
  double rate(double base, int64_t steps) const override;

 private:
  int64_t total_;
  CosineOptions options_;
};

}  // namespace muster

#endif  // MUSTER_LEARNING_RATE_H_
