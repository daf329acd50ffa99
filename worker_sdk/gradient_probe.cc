#include "worker_sdk/gradient_probe.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/variable.h>

#include <limits>
#include <utility>

#include "worker_sdk/reducer.h"

namespace muster {

struct GradientProbe::Ear {
  std::function<bool()> reduced;
  int64_t step = 0;
  bool called_back = false;
  GradientSample heard, sample;

  void Hear(const at::Tensor& parameter, const at::Tensor& incoming,
            const std::shared_ptr<Ear>& self) {
    if (step == 0 || !incoming.defined() || incoming.is_sparse()) return;
    const at::NoGradGuard no_grad;
    const at::Tensor added = Wide(incoming);
    const at::Tensor& before = parameter.grad();
    if (before.defined()) {
      const at::Tensor had = Wide(before);
      heard = {step, had + added, had.abs() + added.abs(), {}};
    } else {
      heard = {step, added.clone(), added.abs(), {}};
    }
    if (std::exchange(called_back, true)) return;
    AfterReducer([parameter, self] { self->Finish(parameter); });
  }

  void Finish(const at::Tensor& parameter) {
    const at::NoGradGuard no_grad;
    sample = std::exchange(heard, {});
    // A backward within a backward ends, and calls back, before all gradients are there.
    if (parameter.grad().defined() && reduced())
      sample.delivered = parameter.grad().detach().clone();
    step = 0;
  }
};

// The hook lies with the parameter, which must not hold itself.
GradientProbe::GradientProbe(at::Tensor parameter, std::function<bool()> reduced)
    : parameter_(std::move(parameter)), ear_(std::make_shared<Ear>()) {
  ear_->reduced = std::move(reduced);
  const c10::weak_intrusive_ptr<c10::TensorImpl> weak(parameter_.getIntrusivePtr());
  hook_ = parameter_.register_hook([weak, ear = ear_](const at::Tensor& incoming) {
    if (auto impl = weak.lock()) ear->Hear(at::Tensor(std::move(impl)), incoming, ear);
  });
}

GradientProbe::~GradientProbe() { parameter_.remove_hook(hook_); }

void GradientProbe::Listen(int64_t step) {
  ear_->step = step;
  ear_->called_back = false;
  ear_->heard = {};
  if (step != 0) ear_->sample = {};
}

const GradientSample& GradientProbe::sample() const { return ear_->sample; }

at::Tensor Wide(const at::Tensor& gradient) {
  const at::Tensor plain = gradient.detach();
  return (plain.is_complex() ? at::view_as_real(plain.resolve_conj()) : plain).to(at::kDouble);
}

Rounding RoundingOf(at::ScalarType type, int ranks) {
  const auto of = [&](auto number) {
    using Limits = std::numeric_limits<decltype(number)>;
    const double terms = ranks + 2;
    const auto eps = static_cast<double>(Limits::epsilon());
    return Rounding{terms * eps, terms * eps * static_cast<double>(Limits::min())};
  };
  switch (type) {
    case at::kHalf:
      return of(at::Half());
    case at::kBFloat16:
      return of(at::BFloat16());
    case at::kDouble:
    case at::kComplexDouble:
      return of(double());
    default:
      return of(float());
  }
}

}  // namespace muster
