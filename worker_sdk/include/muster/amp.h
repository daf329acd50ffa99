#ifndef MUSTER_AMP_H_
#define MUSTER_AMP_H_

#include <muster/world.h>
#include <torch/optim/optimizer.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace muster {

// While one lives, this thread's operations on `device` run in a lower precision where that is
// safe, as under Python's torch.autocast. Put forward and loss inside, backward outside. Guards
// nest; the innermost counts.
class Autocast {
 public:
  // Without `dtype`: bfloat16 on the CPU, half on a GPU, unless LibTorch was told otherwise.
  explicit Autocast(at::Device device, std::optional<at::ScalarType> dtype = std::nullopt,
                    bool on = true);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  void Become(at::ScalarType dtype) const;
  at::DeviceType device_;
  at::ScalarType dtype_before_;
  bool on_before_;
};

// The defaults are Python's.
struct GradScalerOptions {
  TORCH_ARG(double, init_scale) = 65536;       // the first scale
  TORCH_ARG(double, growth_factor) = 2;        // after growth_interval steps without inf or NaN
  TORCH_ARG(double, backoff_factor) = 0.5;     // after a step with
  TORCH_ARG(int64_t, growth_interval) = 2000;  // steps
  TORCH_ARG(bool, enabled) = true;             // false: scale() does nothing, step() steps
};

// Scales losses so that small gradients survive in half precision, as Python's torch.amp.GradScaler
// does. In addition, all ranks always take the same decision: an inf or NaN on one rank makes all
// of them skip the step, whether or not their gradients are averaged. (bfloat16 needs no scaler.)
//
//   scaler.scale(loss).backward(); [scaler.unscale(opt); clip;] scaler.step(opt); scaler.update();
//
// One thread. It keeps the optimizers' addresses between step() and update().
class GradScaler {
 public:
  // Collective: throws Error for factors that make no sense, Mismatch, on every rank, if the ranks
  // have different options.
  explicit GradScaler(World world, GradScalerOptions options = {});
  ~GradScaler();
  GradScaler(GradScaler&&) noexcept;
  GradScaler& operator=(GradScaler&&) = delete;

  at::Tensor scale(const at::Tensor& loss) const;
  // Divides the gradients by the scale, for clipping them. Collective, as is step() without it.
  // At most once per step, after the last backward of it: else Error. Gradients in half precision
  // are an Error: keep the parameters in float.
  void unscale(torch::optim::Optimizer& optimizer);
  // False: some rank had an inf or NaN, and no rank has changed its parameters.
  bool step(torch::optim::Optimizer& optimizer);
  void update();  // once per iteration, after all step()s: the next scale

  double current_scale() const;  // what scale() multiplies with

  // For State. check() throws CheckpointError.
  std::string snapshot() const;
  void check(std::string_view bytes) const;
  void restore(std::string_view bytes);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster

#endif  // MUSTER_AMP_H_
