#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <muster/amp.h>

#include <cmath>
#include <cstring>
#include <map>

#include "worker_sdk/byte_stream.h"

namespace muster {

Autocast::Autocast(at::Device device, std::optional<at::ScalarType> dtype, bool on)
    : device_(device.type()),
      dtype_before_(at::autocast::get_autocast_dtype(device_)),
      on_before_(at::autocast::is_autocast_enabled(device_)) {
  at::autocast::increment_nesting();
  at::autocast::set_autocast_enabled(device_, on);
  if (dtype) Become(*dtype);
}

Autocast::~Autocast() {
  // Weights in low precision are kept for the outermost guard only: a step changes them.
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(device_, on_before_);
  Become(dtype_before_);
}

// What is kept is of one type.
void Autocast::Become(at::ScalarType dtype) const {
  if (dtype != at::autocast::get_autocast_dtype(device_)) at::autocast::clear_cache();
  at::autocast::set_autocast_dtype(device_, dtype);
}

struct GradScaler::Impl {
  enum class Stage { kReady, kUnscaled, kStepped };
  struct PerOptimizer {
    Stage stage = Stage::kReady;
    bool found_inf = false;
  };

  // Divides what this rank has; true if something of it is inf or NaN.
  bool UnscaleOwn(torch::optim::Optimizer& optimizer) const;

  World world;
  GradScalerOptions options;
  float scale = 0;  // as Python, in single precision
  int64_t good_steps = 0;
  std::map<const torch::optim::Optimizer*, PerOptimizer> per_optimizer;
};

GradScaler::GradScaler(World world, GradScalerOptions options)
    : impl_(std::make_unique<Impl>(Impl{std::move(world), std::move(options), 0, 0, {}})) {
  const GradScalerOptions& o = impl_->options;
  impl_->scale = static_cast<float>(o.init_scale());
  const at::Tensor own =
      at::tensor({o.init_scale(), o.growth_factor(), o.backoff_factor(),
                  static_cast<double>(o.growth_interval()), o.enabled() ? 1.0 : 0.0},
                 at::kDouble);
  const at::Tensor all = impl_->world.all_gather(own);
  if (!all.eq(all[0]).all().item<bool>()) {
    throw Mismatch("GradScaler: the ranks have different options; use the same on every rank");
  }
  if (!(o.init_scale() > 0) || !(o.growth_factor() > 1) || !(o.backoff_factor() < 1) ||
      !(o.backoff_factor() > 0) || o.growth_interval() < 1) {
    throw Error(
        "GradScaler: init_scale must be more than 0, growth_factor more than 1, backoff_factor "
        "between 0 and 1, growth_interval at least 1");
  }
}

GradScaler::~GradScaler() = default;
GradScaler::GradScaler(GradScaler&&) noexcept = default;

at::Tensor GradScaler::scale(const at::Tensor& loss) const {
  if (!impl_->options.enabled()) return loss;
  // A tensor: a loss in half precision times a number would stay in half precision.
  return loss * at::full({}, impl_->scale, loss.options().dtype(at::kFloat).requires_grad(false));
}

bool GradScaler::Impl::UnscaleOwn(torch::optim::Optimizer& optimizer) const {
  const at::NoGradGuard no_grad;
  std::map<std::pair<at::Device, at::ScalarType>, std::vector<at::Tensor>,
           bool (*)(const std::pair<at::Device, at::ScalarType>&,
                    const std::pair<at::Device, at::ScalarType>&)>
      alike([](const auto& a, const auto& b) {
        return std::tuple(a.first.type(), a.first.index(), a.second) <
               std::tuple(b.first.type(), b.first.index(), b.second);
      });
  for (auto& group : optimizer.param_groups()) {
    for (at::Tensor& parameter : group.params()) {
      at::Tensor gradient = parameter.grad();
      if (!gradient.defined()) continue;
      if (gradient.scalar_type() == at::kHalf) {
        throw Error(
            "GradScaler: a gradient is in half precision; keep the parameters in float and use "
            "Autocast");
      }
      if (gradient.is_sparse()) gradient = gradient._values();
      alike[{gradient.device(), gradient.scalar_type()}].push_back(gradient);
    }
  }
  bool found = false;
  for (auto& [kind, gradients] : alike) {
    const auto options = at::TensorOptions().dtype(at::kFloat).device(kind.first);
    at::Tensor found_inf = at::zeros({}, options);
    // The reciprocal in double precision, as Python takes it.
    const auto inverse = static_cast<float>(1.0 / static_cast<double>(scale));
    at::_amp_foreach_non_finite_check_and_unscale_(gradients, found_inf,
                                                   at::full({}, inverse, options));
    found |= found_inf.item<float>() != 0;
  }
  return found;
}

void GradScaler::unscale(torch::optim::Optimizer& optimizer) {
  if (!impl_->options.enabled()) return;
  Impl::PerOptimizer& own = impl_->per_optimizer[&optimizer];
  if (own.stage != Impl::Stage::kReady) {
    throw Error(own.stage == Impl::Stage::kUnscaled
                    ? "GradScaler: unscale() a second time since update()"
                    : "GradScaler: unscale() after step(); call update() in between");
  }
  const at::Tensor found =
      at::full({1}, impl_->UnscaleOwn(optimizer) ? 1 : 0, at::TensorOptions().dtype(at::kInt));
  impl_->world.all_reduce(found, Op::max);  // on the CPU: Gloo is there with NCCL too
  own = {Impl::Stage::kUnscaled, found.item<int>() != 0};
}

bool GradScaler::step(torch::optim::Optimizer& optimizer) {
  if (!impl_->options.enabled()) {
    optimizer.step();
    return true;
  }
  Impl::PerOptimizer& own = impl_->per_optimizer[&optimizer];
  if (own.stage == Impl::Stage::kStepped) {
    throw Error("GradScaler: step() a second time; call update() in between");
  }
  if (own.stage == Impl::Stage::kReady) unscale(optimizer);
  own.stage = Impl::Stage::kStepped;
  if (own.found_inf) return false;
  optimizer.step();
  return true;
}

void GradScaler::update() {
  if (!impl_->options.enabled()) return;
  if (impl_->per_optimizer.empty()) throw Error("GradScaler: update() before any step()");
  bool found_inf = false;
  for (const auto& [optimizer, own] : impl_->per_optimizer) found_inf |= own.found_inf;
  impl_->per_optimizer.clear();
  const GradScalerOptions& o = impl_->options;
  if (found_inf) {
    impl_->scale = static_cast<float>(impl_->scale * o.backoff_factor());
    impl_->good_steps = 0;
  } else if (++impl_->good_steps == o.growth_interval()) {
    const auto grown = static_cast<float>(impl_->scale * o.growth_factor());
    if (std::isfinite(grown)) impl_->scale = grown;
    impl_->good_steps = 0;
  }
}

double GradScaler::current_scale() const { return impl_->options.enabled() ? impl_->scale : 1; }

namespace {

struct Snapshot {
  double scale;
  int64_t good_steps;
};

Snapshot Read(std::string_view bytes) {
  Snapshot snapshot{};
  if (bytes.size() != sizeof snapshot) throw CheckpointError("it is no GradScaler's state");
  std::memcpy(&snapshot, bytes.data(), sizeof snapshot);
  if (!(snapshot.scale > 0)) throw CheckpointError("its scale is not a positive number");
  return snapshot;
}

}  // namespace

std::string GradScaler::snapshot() const {
  const Snapshot snapshot{impl_->scale, impl_->good_steps};
  return {reinterpret_cast<const char*>(&snapshot), sizeof snapshot};
}

void GradScaler::check(std::string_view bytes) const { Read(bytes); }

void GradScaler::restore(std::string_view bytes) {
  const Snapshot snapshot = Read(bytes);
  impl_->scale = static_cast<float>(snapshot.scale);
  impl_->good_steps = snapshot.good_steps;
  impl_->per_optimizer.clear();
}

}  // namespace muster
