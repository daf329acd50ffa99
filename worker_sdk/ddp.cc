#include <muster/ddp.h>

#include <torch/nn/modules/embedding.h>

#include <limits>
#include <unordered_set>

#include "worker_sdk/ddp_agreement.h"
#include "worker_sdk/ddp_sink.h"
#include "worker_sdk/membership.h"
#include "worker_sdk/reducer.h"

namespace muster {
namespace {

constexpr size_t kBroadcastBytes = 250 << 20;
constexpr double kMiB = 1 << 20;

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string Join(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// Parameters whose gradients are sparse, by identity.
std::unordered_set<const void*> SparseParameters(const torch::nn::Module& module) {
  std::unordered_set<const void*> sparse;
  for (const auto& part : module.modules(true)) {
    if (const auto* one = part->as<torch::nn::Embedding>(); one && one->options.sparse()) {
      sparse.insert(one->weight.unsafeGetTensorImpl());
    }
    if (const auto* bag = part->as<torch::nn::EmbeddingBag>(); bag && bag->options.sparse()) {
      sparse.insert(bag->weight.unsafeGetTensorImpl());
    }
  }
  return sparse;
}

}  // namespace

class DDPCore::Impl {
 public:
  Impl(std::shared_ptr<torch::nn::Module> module, World world, DDPOptions options)
      : module_(std::move(module)), world_(std::move(world)), options_(std::move(options)) {
    CollectParameters();
    RequireAgreement(world_, options_, AllNamed(), Buffers());
    CopyFromLeader();
    BuildReducer();
  }

  ~Impl() { Drop(); }

  void BeforeForward() {
    RequireEngine();
    if (!at::GradMode::is_enabled()) return SyncBuffers();
    Guard("forward", [&] {
      if (sync_) {
        logger_->set_runtime_stats_and_log();
        reducer_->prepare_for_forward();
      }
      reducer_->rebuild_buckets();
    });
    SyncBuffers();
  }

  void AfterForward(const std::vector<at::Tensor*>& outputs) {
    const bool arms = at::GradMode::is_enabled() && sync_;
    buffers_are_due_ = arms;
    armed_ = arms;
    const bool walk = options_.find_unused_parameters() && !options_.static_graph();
    if (arms) {
      std::vector<at::Tensor> roots;
      for (const at::Tensor* output : outputs) {
        if (walk && output->defined()) roots.push_back(*output);
      }
      Guard("forward", [&] { reducer_->prepare_for_backward(roots); });
    }
    // In a static graph every time, not only at first: an output left out of the loss must look
    // alike in each iteration.
    if (walk || options_.static_graph()) PassThroughSink(outputs);
  }

  void Backward(const at::Tensor& loss) {
    RequireEngine();
    if (sync_ && !std::exchange(armed_, false)) {
      throw Error(
          "a second backward for one forward would leave this rank's gradients to itself: "
          "add the losses, or use no_sync() for all but the last forward");
    }
    try {
      loss.backward();
      if (sync_) reducer_->check_finalized();
    } catch (const std::exception& error) {
      FailBackward(error);
    }
  }

  void SetSync(bool sync) { sync_ = sync; }
  bool sync() const { return sync_; }

  void ZeroGrad(bool set_to_none) {
    for (auto& [name, parameter] : parameters_) {
      at::Tensor& gradient = parameter.mutable_grad();
      if (!gradient.defined()) continue;
      if (set_to_none) {
        gradient.reset();
      } else {
        const at::NoGradGuard no_grad;
        gradient.zero_();
      }
    }
  }

  double MaxParameterDifference(std::string* worst) const {
    std::vector<double> differences;
    for (const auto& [name, parameter] : parameters_) {
      const at::Tensor leaders = parameter.detach().clone();
      world_.broadcast(leaders, 0);
      differences.push_back(MaxDifference(parameter, leaders));
    }
    const at::Tensor all = at::tensor(differences, at::kDouble);
    world_.all_reduce(all, Op::max);  // on the CPU: Gloo is there with NCCL too
    if (worst != nullptr) *worst = parameters_[all.argmax().item<int64_t>()].first;
    return all.max().item<double>();
  }

  double MaxGradientDifference(const at::Tensor& reference_loss) const {
    torch::autograd::variable_list inputs;
    for (const auto& [name, parameter] : parameters_) inputs.push_back(parameter);
    // grad() returns the gradients and does not accumulate them, so that Reducer's hooks do not
    // run.
    const auto expected = torch::autograd::grad({reference_loss}, inputs, {}, std::nullopt, false,
                                                /*allow_unused=*/true);
    double largest = 0;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const at::Tensor zero = at::zeros_like(inputs[i]);
      const at::Tensor& own = inputs[i].grad();
      largest = std::max(largest, MaxDifference(own.defined() ? own : zero,
                                                expected[i].defined() ? expected[i] : zero));
    }
    const at::Tensor all = at::tensor({largest}, at::kDouble);
    world_.all_reduce(all, Op::max);
    return all.item<double>();
  }

  std::vector<int64_t> BucketBytes() const { return logger_->get_bucket_sizes(); }
  const World& world() const { return world_; }

 private:
  // An error of the step before may show here: after loss.backward() nobody looked.
  template <class F>
  void Guard(const char* what, F&& part) {
    try {
      part();
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      if (Classify(MessageOf(error)) == FailureKind::kUnusedParameter) FailBackward(error);
      world_.membership().ThrowTyped(what, error);
    }
  }

  void RequireEngine() const {
    if (!reducer_)
      throw PeerLost("this rank left its group after an error: start again from a checkpoint");
  }

  void CollectParameters() {
    std::unordered_set<const void*> seen;
    std::unordered_set<c10::DeviceType> devices;
    for (const auto& item : module_->named_parameters(true)) {
      const at::Tensor& parameter = item.value();
      if (!parameter.defined() || !parameter.requires_grad()) continue;
      if (Contains(options_.ignore(), item.key())) continue;
      if (!seen.insert(parameter.unsafeGetTensorImpl()).second) continue;  // shared by two layers
      parameters_.emplace_back(item.key(), parameter);
      devices.insert(parameter.device().type());
    }
    if (parameters_.empty()) {
      throw Error(
          "DistributedDataParallel: the module has no parameter that requires a gradient; "
          "there is nothing to average");
    }
    if (devices.size() > 1) {
      throw Error(
          "DistributedDataParallel: the parameters are on several types of devices; move the "
          "module to one with net->to(world.device())");
    }
  }

  // Frozen ones too: they are copied from rank 0, so they must fit.
  NamedTensors AllNamed() const {
    NamedTensors named;
    for (const auto& item : module_->named_parameters(true)) {
      if (item.value().defined() && !Contains(options_.ignore(), item.key())) {
        named.emplace_back(item.key(), item.value());
      }
    }
    return named;
  }

  // Anew each time: a module may put another tensor in a buffer's place.
  NamedTensors Buffers() const {
    NamedTensors buffers;
    for (const auto& item : module_->named_buffers(true)) {
      if (item.value().defined() && !Contains(options_.ignore(), item.key())) {
        buffers.emplace_back(item.key(), item.value());
      }
    }
    return buffers;
  }

  void BroadcastFromLeader(const NamedTensors& named) {
    if (named.empty()) return;
    const at::NoGradGuard no_grad;
    std::vector<at::Tensor> tensors;
    for (const auto& [name, tensor] : named) tensors.push_back(tensor.detach());
    Guard("broadcast of the model",
          [&] { c10d::broadcast_coalesced(world_.process_group(), tensors, kBroadcastBytes, 0); });
  }

  void CopyFromLeader() {
    BroadcastFromLeader(AllNamed());
    if (options_.broadcast_buffers()) BroadcastFromLeader(Buffers());
  }

  void SyncBuffers() {
    if (options_.broadcast_buffers() && buffers_are_due_) BroadcastFromLeader(Buffers());
  }

  void BuildReducer() {
    ReducerSettings settings;
    const auto sparse = SparseParameters(*module_);
    for (const auto& [name, parameter] : parameters_) {
      settings.names[settings.parameters.size()] = name;
      settings.parameters.push_back(parameter);
      settings.sparse.push_back(sparse.contains(parameter.unsafeGetTensorImpl()));
    }
    const auto bytes = [](double mb) { return static_cast<size_t>(std::max(mb * kMiB, 1.0)); };
    const size_t cap = bytes(options_.bucket_cap_mb());
    const size_t first = std::min(cap, bytes(options_.first_bucket_mb()));
    // Where the buckets are rebuilt after the first iteration anyway, one is enough for it.
    const bool will_rebuild = options_.static_graph() || !options_.find_unused_parameters();
    const std::vector<size_t> limits = will_rebuild
                                           ? std::vector{std::numeric_limits<size_t>::max() >> 1}
                                           : std::vector{first, cap};
    settings.buckets = std::get<0>(c10d::compute_bucket_assignment_by_size(
        settings.parameters, limits, settings.sparse, {}, {}));
    // Gradients become ready from the last layer to the first.
    std::reverse(settings.buckets.begin(), settings.buckets.end());
    settings.group = world_.process_group();
    settings.bucket_bytes = static_cast<int64_t>(cap);
    settings.first_bucket_bytes = static_cast<int64_t>(first);
    settings.find_unused = options_.find_unused_parameters();
    settings.gradient_as_bucket_view = options_.gradient_as_bucket_view();
    reducer_ = MakeReducer<c10d::Reducer>(std::move(settings));
    // Reducer uses its logger unasked when the set of unused parameters changes.
    logger_ = std::make_shared<c10d::Logger>(reducer_);
    reducer_->set_logger(logger_);
    const bool on_gpu = parameters_[0].second.is_cuda();
    const int device = on_gpu ? parameters_[0].second.device().index() : -1;
    logger_->set_construction_data_and_log(
        module_->name(), on_gpu ? std::vector{device} : std::vector<int>(), device,
        options_.broadcast_buffers(), false, options_.static_graph());
    if (options_.static_graph()) {
      reducer_->set_static_graph();
      logger_->set_static_graph();
    }
    sink_->reducer = reducer_;
    sink_->static_graph = options_.static_graph();
  }

  void PassThroughSink(const std::vector<at::Tensor*>& outputs) {
    torch::autograd::variable_list inputs;
    std::vector<at::Tensor*> places;
    for (at::Tensor* output : outputs) {
      if (!output->defined() || !output->grad_fn()) continue;
      inputs.push_back(*output);
      places.push_back(output);
    }
    if (inputs.empty()) return;
    // As a TensorList: a vector would be taken for a constant.
    const auto passed = Sink::apply(sink_, at::TensorList(inputs));
    for (size_t i = 0; i < places.size(); ++i) *places[i] = passed[i];
  }

  // The others are, or will be, in a collective that this rank does not come to. They must learn
  // why.
  [[noreturn]] void FailBackward(const std::exception& error) {
    const std::string message = MessageOf(error);
    const FailureKind kind = Classify(message);
    Membership& membership = world_.membership();
    FailureNote note{kind, world_.rank(), FirstLine(message), {}};
    if (kind == FailureKind::kUnusedParameter) {
      for (const size_t index : UnusedIndices(message)) {
        if (index < parameters_.size()) note.names.push_back(parameters_[index].first);
      }
      note.what = "on rank " + std::to_string(world_.rank()) + " no gradient came for parameter " +
                  Join(note.names) +
                  ": use it in the loss, freeze it, or set find_unused_parameters";
    }
    // Reducer and Logger refer to the group and must go before it. What was thrown is still needed
    // after that.
    const auto thrown = std::current_exception();
    Drop();
    if (kind == FailureKind::kUnusedParameter) {
      membership.Leave(note);
      throw UnusedParameter(note.what, note.names);
    }
    const bool from_group = kind == FailureKind::kPeerLost || kind == FailureKind::kTimeout;
    if (!from_group) {
      membership.Leave(note);
      std::rethrow_exception(thrown);
    }
    try {
      membership.ThrowTyped("backward", error);
    } catch (...) {
      membership.Leave(note);
      throw;
    }
  }

  void Drop() {
    logger_.reset();
    reducer_.reset();
  }

  std::shared_ptr<torch::nn::Module> module_;
  World world_;
  DDPOptions options_;
  NamedTensors parameters_;  // that require a gradient, each once
  std::shared_ptr<c10d::Reducer> reducer_;
  std::shared_ptr<c10d::Logger> logger_;
  std::shared_ptr<SinkState> sink_ = std::make_shared<SinkState>();
  bool sync_ = true;
  bool armed_ = false;  // the last forward expects a backward that reduces
  bool buffers_are_due_ = true;
};

DDPCore::DDPCore(std::shared_ptr<torch::nn::Module> module, World world, DDPOptions options)
    : impl_(std::make_unique<Impl>(std::move(module), std::move(world), std::move(options))) {}
DDPCore::~DDPCore() = default;

void DDPCore::before_forward() { impl_->BeforeForward(); }
void DDPCore::after_forward(const std::vector<at::Tensor*>& outputs) {
  impl_->AfterForward(outputs);
}
void DDPCore::backward(const at::Tensor& loss) { impl_->Backward(loss); }
void DDPCore::set_sync(bool sync) { impl_->SetSync(sync); }
bool DDPCore::sync() const { return impl_->sync(); }
void DDPCore::zero_grad(bool set_to_none) { impl_->ZeroGrad(set_to_none); }
double DDPCore::max_parameter_difference(std::string* worst) const {
  return impl_->MaxParameterDifference(worst);
}
double DDPCore::max_gradient_difference(const at::Tensor& reference_loss) const {
  return impl_->MaxGradientDifference(reference_loss);
}
std::vector<int64_t> DDPCore::bucket_bytes() const { return impl_->BucketBytes(); }
const World& DDPCore::world() const { return impl_->world(); }

}  // namespace muster
