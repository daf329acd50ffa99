#include <torch/nn/modules/embedding.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <unordered_set>

#include "worker_sdk/ddp_hooks.h"
#include "worker_sdk/ddp_impl.h"
#include "worker_sdk/reducer.h"

namespace muster {
namespace {

constexpr size_t kBroadcastBytes = 250 << 20;
constexpr double kMiB = 1 << 20;

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
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

size_t BytesOf(double mb) { return static_cast<size_t>(std::max(mb * kMiB, 1.0)); }

}  // namespace

DDPCore::Impl::Impl(std::shared_ptr<torch::nn::Module> module, World world, DDPOptions options)
    : module_(std::move(module)), world_(std::move(world)), options_(std::move(options)) {
  CollectParameters();
  // What is wrong on one rank only must not leave the others waiting.
  RequireAgreement(world_, options_, Problem(), AllNamed(), Buffers());
  Broadcast(AllNamed(), 0);
  if (options_.broadcast_buffers()) Broadcast(Buffers(), 0);
  if (options_.sync_batch_norm()) {
    std::vector<int> everybody(static_cast<size_t>(world_.size()));
    std::iota(everybody.begin(), everybody.end(), 0);
    norm_group_ = world_.subgroup(everybody);
  }
  BuildReducer();
  check_ = std::make_unique<DdpCheck>(
      world_, DdpCheck::Wrapper{parameters_, options_.comm_hook(), [this] { CheckConsistency(0); },
                                [this] { return HasReduced(); }});
}

DDPCore::Impl::~Impl() { Drop(); }

// Reducer and Logger refer to the group and must go before it.
void DDPCore::Impl::Drop() {
  logger_.reset();
  reducer_.reset();
}

void DDPCore::Impl::CollectParameters() {
  std::unordered_set<const void*> seen;
  for (const auto& item : module_->named_parameters(true)) {
    const at::Tensor& parameter = item.value();
    if (!parameter.defined() || !parameter.requires_grad()) continue;
    if (Contains(options_.ignore(), item.key())) continue;
    if (!seen.insert(parameter.unsafeGetTensorImpl()).second) continue;  // shared by two layers
    parameters_.emplace_back(item.key(), parameter);
  }
}

std::string DDPCore::Impl::Problem() const {
  if (parameters_.empty()) {
    return "the module has no parameter that requires a gradient; there is nothing to average";
  }
  for (const auto& [name, parameter] : parameters_) {
    if (parameter.device().type() == parameters_[0].second.device().type()) continue;
    return "the parameters are on several types of devices: " + parameters_[0].first + " on " +
           parameters_[0].second.device().str() + ", " + name + " on " + parameter.device().str() +
           "; move the module with net->to(world.device())";
  }
  if (options_.bucket_cap_mb() <= 0 || options_.first_bucket_mb() <= 0) {
    return "bucket_cap_mb and first_bucket_mb must be more than 0";
  }
  for (const std::string& name : options_.ignore()) {
    const auto parameters = module_->named_parameters(true);
    const auto buffers = module_->named_buffers(true);
    if (parameters.contains(name) || buffers.contains(name)) continue;
    return "there is no parameter or buffer '" + name + "' to ignore";
  }
  return "";
}

// Frozen ones too: they are copied from rank 0, so they must fit.
NamedTensors DDPCore::Impl::AllNamed() const {
  NamedTensors named;
  for (const auto& item : module_->named_parameters(true)) {
    if (item.value().defined() && !Contains(options_.ignore(), item.key())) {
      named.emplace_back(item.key(), item.value());
    }
  }
  return named;
}

// Anew each time: a module may put another tensor in a buffer's place.
NamedTensors DDPCore::Impl::Buffers() const {
  NamedTensors buffers;
  for (const auto& item : module_->named_buffers(true)) {
    if (item.value().defined() && !Contains(options_.ignore(), item.key())) {
      buffers.emplace_back(item.key(), item.value());
    }
  }
  return buffers;
}

void DDPCore::Impl::Broadcast(const NamedTensors& named, int root) {
  if (named.empty()) return;
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> tensors;
  for (const auto& [name, tensor] : named) tensors.push_back(tensor.detach());
  Guard("broadcast of the model",
        [&] { c10d::broadcast_coalesced(world_.process_group(), tensors, kBroadcastBytes, root); });
}

void DDPCore::Impl::BuildReducer() {
  ReducerSettings settings;
  const auto sparse = SparseParameters(*module_);
  for (const auto& [name, parameter] : parameters_) {
    settings.names[settings.parameters.size()] = name;
    settings.parameters.push_back(parameter);
    settings.sparse.push_back(sparse.contains(parameter.unsafeGetTensorImpl()));
  }
  const size_t cap = BytesOf(options_.bucket_cap_mb());
  const size_t first = std::min(cap, BytesOf(options_.first_bucket_mb()));
  // Where the buckets are rebuilt after the first iteration anyway, one is enough for it.
  const std::vector<size_t> limits =
      Walks() ? std::vector{first, cap} : std::vector{std::numeric_limits<size_t>::max() >> 1};
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
  if (options_.comm_hook().run) {
    reducer_->register_comm_hook(AdaptHook(options_.comm_hook(), world_));
    logger_->set_comm_hook(options_.comm_hook().name);
  } else if (world_.size() == 1 && sparse.empty()) {
    // The sum of one is there already; the backend would hand it to a thread of its own and back.
    // (A sparse one it also brings into order.)
    reducer_->register_comm_hook(
        AdaptHook({"", [](const World&, Bucket&) { return Pending(); }}, world_));
  }
  sink_->reducer = reducer_;
  sink_->static_graph = options_.static_graph();
}

}  // namespace muster
