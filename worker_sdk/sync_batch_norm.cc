#include "worker_sdk/sync_batch_norm.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <mutex>
#include <optional>
#include <utility>

namespace muster {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// A module's batch norm cannot be replaced: it is a typed member and its forward() is not virtual.
// But all of them call this operator. The key is one that LibTorch itself uses in tests only.
constexpr auto kKey = c10::DispatchKey::TESTING_ONLY_GenericWrapper;

thread_local const World* group_here = nullptr;

struct Group : torch::CustomClassHolder {
  explicit Group(World w) : world(std::move(w)) {}
  World world;
};

std::vector<int64_t> AllButChannels(const at::Tensor& input) {
  std::vector<int64_t> dims;
  for (int64_t dim = 0; dim < input.dim(); ++dim) {
    if (dim != 1) dims.push_back(dim);
  }
  return dims;
}

at::ScalarType WideType(const at::Tensor& input) {
  return input.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

// [C] as it applies to `like`.
at::Tensor PerChannel(const at::Tensor& values, const at::Tensor& like) {
  std::vector<int64_t> shape(static_cast<size_t>(like.dim()), 1);
  shape[1] = values.numel();
  return values.to(WideType(like)).reshape(shape);
}

// Of all ranks' values, in double precision.
struct Moments {
  at::Tensor mean, squares;  // [C]; squares: the sum of the squared distances from the mean
  double count = 0;
};

// By Chan's formula, so that ranks with more values count more, and those without not at all.
Moments MomentsOver(const World& world, const at::Tensor& input) {
  const int64_t channels = input.size(1);
  at::Tensor own = at::zeros({2 * channels + 1}, input.options().dtype(at::kDouble));
  if (input.numel() > 0) {
    const auto [variance, mean] =
        at::var_mean(input.to(WideType(input)), AllButChannels(input), /*correction=*/0);
    const auto count = static_cast<double>(input.numel() / channels);
    own.slice(0, 0, channels).copy_(mean);
    own.slice(0, channels, 2 * channels).copy_(variance).mul_(count);
    own[-1] = count;
  }
  const at::Tensor all = world.all_gather(own);
  const at::Tensor counts = all.slice(1, 2 * channels);  // [ranks, 1]
  const at::Tensor means = all.slice(1, 0, channels);
  Moments moments;
  moments.count = counts.sum().item<double>();
  moments.mean = (means * counts).sum(0) / moments.count;
  moments.squares =
      (all.slice(1, channels, 2 * channels) + counts * (means - moments.mean).square()).sum(0);
  return moments;
}

void UpdateRunning(const at::Tensor& running, const at::Tensor& now, double momentum) {
  if (running.defined()) running.mul_(1 - momentum).add_(now.to(running.scalar_type()), momentum);
}

struct SyncedBatchNorm : torch::autograd::Function<SyncedBatchNorm> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input,
                            const at::Tensor& weight, const at::Tensor& bias,
                            const at::Tensor& running_mean, const at::Tensor& running_var,
                            double momentum, double eps, const World& world) {
    const Moments moments = MomentsOver(world, input);
    if (moments.count < 2) {
      throw Error("batch norm needs more than one value per channel over all ranks");
    }
    UpdateRunning(running_mean, moments.mean, momentum);
    UpdateRunning(running_var, moments.squares / (moments.count - 1), momentum);
    const at::Tensor mean = moments.mean.to(WideType(input));
    const at::Tensor variance = (moments.squares / moments.count).to(WideType(input));
    context->save_for_backward({input, weight, mean, variance});
    context->saved_data["count"] = moments.count;
    context->saved_data["eps"] = eps;
    context->saved_data["group"] = c10::IValue::make_capsule(c10::make_intrusive<Group>(world));
    if (input.numel() == 0) return at::empty_like(input);
    return std::get<0>(
        at::native_batch_norm(input, weight, bias, mean, variance, /*training=*/false, 0, eps));
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &input = saved[0], &weight = saved[1], &mean = saved[2], &variance = saved[3];
    const double count = context->saved_data["count"].toDouble();
    const double eps = context->saved_data["eps"].toDouble();
    const auto capsule = context->saved_data["group"].toCapsule();
    const World& world = static_cast<const Group*>(capsule.get())->world;
    const at::Tensor& output_gradient = gradients[0];

    // The sums of dy * (x - mean) / deviation and of dy are the gradients of weight and bias, too.
    at::Tensor weighted = at::zeros_like(mean), plain = at::zeros_like(mean);
    if (input.numel() > 0) {
      std::tie(std::ignore, weighted, plain) = at::native_batch_norm_backward(
          output_gradient.contiguous(), input.contiguous(), weight, mean, variance, {}, {},
          /*train=*/false, eps, {false, true, true});
    }
    const at::Tensor sums = at::stack({weighted, plain}).to(at::kDouble);
    world.all_reduce(sums);
    sums.div_(count);

    const at::Tensor deviation = (variance.to(at::kDouble) + eps).rsqrt();
    const at::Tensor slope = weight.defined() ? deviation * weight : deviation;
    const at::Tensor along = -slope * deviation * sums[0];
    const at::Tensor constant = -slope * sums[1] - along * mean;
    const at::Tensor input_gradient =
        (output_gradient.to(WideType(input)) * PerChannel(slope, input))
            .addcmul_(input.to(WideType(input)), PerChannel(along, input))
            .add_(PerChannel(constant, input))
            .to(input.scalar_type());
    return {input_gradient,
            weight.defined() ? weighted : at::Tensor(),
            weight.defined() ? plain : at::Tensor(),
            {},
            {},
            {},
            {},
            {}};
  }
};

at::Tensor BatchNorm(const at::Tensor& input, const std::optional<at::Tensor>& weight,
                     const std::optional<at::Tensor>& bias, const std::optional<at::Tensor>& mean,
                     const std::optional<at::Tensor>& variance, bool training, double momentum,
                     double eps, bool cudnn) {
  const c10::impl::ExcludeDispatchKeyGuard once(kKey);
  if (!training || group_here == nullptr) {
    return at::batch_norm(input, weight, bias, mean, variance, training, momentum, eps, cudnn);
  }
  const auto given = [](const std::optional<at::Tensor>& tensor) {
    return tensor ? *tensor : at::Tensor();
  };
  return SyncedBatchNorm::apply(input, given(weight), given(bias), given(mean), given(variance),
                                momentum, eps, *group_here);
}

// Calls batch_norm with a shape of its own, for each sample by itself.
at::Tensor InstanceNorm(const at::Tensor& input, const std::optional<at::Tensor>& weight,
                        const std::optional<at::Tensor>& bias,
                        const std::optional<at::Tensor>& mean,
                        const std::optional<at::Tensor>& variance, bool use_input_stats,
                        double momentum, double eps, bool cudnn) {
  const c10::impl::ExcludeDispatchKeyGuard once(kKey);
  return at::instance_norm(input, weight, bias, mean, variance, use_input_stats, momentum, eps,
                           cudnn);
}

// On first use, so that a program without it is not touched.
void RegisterOperators() {
  static torch::Library all(torch::Library::IMPL, "_", kKey, __FILE__, __LINE__);
  static torch::Library aten(torch::Library::IMPL, "aten", kKey, __FILE__, __LINE__);
  all.fallback(torch::CppFunction::makeFallthrough());
  aten.impl("batch_norm", BatchNorm);
  aten.impl("instance_norm", InstanceNorm);
}

class Scope {
 public:
  explicit Scope(const World& group)
      : group_(group), before_(std::exchange(group_here, &group_)), include_(kKey) {}
  ~Scope() { group_here = before_; }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  World group_;
  const World* before_;
  c10::impl::IncludeDispatchKeyGuard include_;
};

}  // namespace

std::shared_ptr<void> SyncBatchNormHere(const World& group) {
  static std::once_flag registered;
  std::call_once(registered, RegisterOperators);
  return std::make_shared<Scope>(group);
}

}  // namespace muster
