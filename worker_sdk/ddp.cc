#include <torch/nn/utils/clip_grad.h>

#include "worker_sdk/ddp_impl.h"
#include "worker_sdk/reducer.h"
#include "worker_sdk/sync_batch_norm.h"

namespace muster {
namespace {

constexpr char kSecondBackward[] =
    "a second backward for one forward would leave this rank's gradients to itself: add the "
    "losses, or use no_sync() for all but the last forward";

std::string Join(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

void DDPCore::Impl::RequireEngine() const {
  if (!reducer_)
    throw PeerLost("this rank left its group after an error: start again from a checkpoint");
}

bool DDPCore::Impl::HasReduced() const {
  try {
    if (reducer_) reducer_->check_finalized();
    return reducer_ != nullptr;
  } catch (const std::exception&) {
    return false;  // it waits for gradients
  }
}

bool DDPCore::Impl::Arms() const { return at::GradMode::is_enabled() && sync_; }

void DDPCore::Impl::BeforeForward(const std::vector<at::Tensor>& inputs) {
  RequireEngine();
  is_in_backward_ = false;  // where it ended by an exception
  const bool accumulates = at::GradMode::is_enabled() && !sync_;
  if (accumulates && options_.static_graph() && !sink_->delay_queued) {
    throw Error(
        "no_sync() before the first step of a static graph, from which Reducer learns the graph: "
        "use it from the second step on");
  }
  if (Arms()) {
    Guard("forward", [&] {
      logger_->set_runtime_stats_and_log();
      reducer_->prepare_for_forward();
    });
  }
  if (join_) VoteLive();
  if (at::GradMode::is_enabled()) Guard("forward", [&] { reducer_->rebuild_buckets(); });
  if (Arms() && !join_) {
    Guard("check", [&] { check_->BeforeForward(inputs, module_->is_training()); });
  }
  SyncBuffers();
}

bool DDPCore::Impl::WantsInputs() const { return Arms() && !join_ && check_->WantsInputs(); }

void DDPCore::Impl::SyncBuffers() {
  if (options_.broadcast_buffers() && buffers_are_due_) Broadcast(Buffers(), buffer_root_);
}

void DDPCore::Impl::AfterForward(const std::vector<at::Tensor*>& outputs) {
  buffers_are_due_ = Arms();
  check_->AfterForward(Arms() && !join_);
  if (Arms()) {
    armed_ = true;
    std::vector<at::Tensor> roots;
    for (const at::Tensor* output : outputs) {
      if (Walks() && output->defined()) roots.push_back(*output);
    }
    Guard("forward", [&] { reducer_->prepare_for_backward(roots); });
  }
  // In a static graph every time, not only at first: an output left out of the loss must look
  // alike in each iteration.
  if (Walks() || (options_.static_graph() && Arms())) PassThroughSink(outputs);
  if (Arms()) WatchBackward(outputs);
}

void DDPCore::Impl::PassThroughSink(const std::vector<at::Tensor*>& outputs) {
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

// Whoever calls backward: loss.backward() does not come by the wrapper.
void DDPCore::Impl::WatchBackward(const std::vector<at::Tensor*>& outputs) {
  for (const at::Tensor* output : outputs) {
    if (!output->defined() || !output->grad_fn()) continue;
    output->register_hook([self = std::weak_ptr(self_)](const at::Tensor&) {
      if (const auto impl = self.lock()) (*impl)->BackwardBegins();
    });
  }
}

void DDPCore::Impl::BackwardBegins() {
  // grad() accumulates nothing, and Reducer stays quiet.
  const auto* only = torch::autograd::get_current_graph_task_exec_info();
  if (is_in_backward_ || (only != nullptr && !only->empty())) return;
  if (!std::exchange(armed_, false)) throw Error(kSecondBackward);
  is_in_backward_ = true;
  AfterReducer([self = std::weak_ptr(self_)] {
    if (const auto impl = self.lock()) (*impl)->BackwardEnds();
  });
}

void DDPCore::Impl::BackwardEnds() {
  is_in_backward_ = false;
  Guard("backward", [&] { reducer_->check_finalized(); });
}

void DDPCore::Impl::Backward(const at::Tensor& loss) {
  RequireEngine();
  if (sync_ && !armed_) throw Error(kSecondBackward);
  try {
    loss.backward();
    // A loss need not come from the outputs, which are watched.
    if (std::exchange(armed_, false)) reducer_->check_finalized();
  } catch (const std::exception& error) {
    if (!reducer_) throw;  // it was typed, and told to the others, within
    Fail("backward", error);
  }
}

std::shared_ptr<void> DDPCore::Impl::ForwardScope() const {
  return norm_group_ && module_->is_training() ? SyncBatchNormHere(*norm_group_) : nullptr;
}

void DDPCore::Impl::FailForward(const std::exception& error) {
  const int rank = world_.membership().WorldRank();
  LeaveAndRethrow({FailureKind::kOther, rank, FirstLine(MessageOf(error)), {}});
}

// The others are, or will be, in a collective that this rank does not come to. They must learn why.
void DDPCore::Impl::LeaveAndRethrow(FailureNote note) {
  // What was thrown is still needed after Reducer is gone.
  const auto thrown = std::current_exception();
  Drop();
  world_.membership().Leave(note);
  std::rethrow_exception(thrown);
}

void DDPCore::Impl::Fail(const char* what, const std::exception& error) {
  const std::string message = MessageOf(error);
  Membership& membership = world_.membership();
  const FailureKind kind = membership.KindOf(message);
  FailureNote note{kind, membership.WorldRank(), FirstLine(message), {}};
  if (kind == FailureKind::kUnusedParameter) {
    for (const size_t index : UnusedIndices(message)) {
      if (index < parameters_.size()) note.names.push_back(parameters_[index].first);
    }
    note.what = "on rank " + std::to_string(note.rank) + " no gradient came for parameter " +
                Join(note.names) + ": use it in the loss, freeze it, or set find_unused_parameters";
    Drop();
    membership.Leave(note);
    throw UnusedParameter(note.what, note.names);
  }
  const bool typed = dynamic_cast<const Error*>(&error) != nullptr;
  if (!typed && (kind == FailureKind::kPeerLost || kind == FailureKind::kTimeout)) {
    const auto kept = std::current_exception();
    Drop();
    membership.ThrowTyped(what, error);
  }
  LeaveAndRethrow(std::move(note));
}

void DDPCore::Impl::ZeroGrad(bool set_to_none) {
  for (const at::Tensor& parameter : module_->parameters()) {
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

double DDPCore::Impl::ClipGradNorm(double max_norm, double norm_type) const {
  if (!sync_) throw Error("clip_grad_norm within no_sync(): the gradients are not averaged yet");
  std::vector<at::Tensor> parameters;
  for (const auto& [name, parameter] : parameters_) parameters.push_back(parameter);
  return torch::nn::utils::clip_grad_norm_(parameters, max_norm, norm_type);
}

DDPCore::DDPCore(std::shared_ptr<torch::nn::Module> module, World world, DDPOptions options)
    : impl_(std::make_unique<Impl>(std::move(module), std::move(world), std::move(options))) {}
DDPCore::~DDPCore() = default;

bool DDPCore::wants_inputs() const { return impl_->WantsInputs(); }
void DDPCore::before_forward(const std::vector<at::Tensor>& inputs) {
  impl_->BeforeForward(inputs);
}
void DDPCore::after_forward(const std::vector<at::Tensor*>& outputs) {
  impl_->AfterForward(outputs);
}
void DDPCore::fail_forward(const std::exception& error) { impl_->FailForward(error); }
void DDPCore::backward(const at::Tensor& loss) { impl_->Backward(loss); }
std::shared_ptr<void> DDPCore::forward_scope() const { return impl_->ForwardScope(); }
double DDPCore::clip_grad_norm(double max_norm, double norm_type) const {
  return impl_->ClipGradNorm(max_norm, norm_type);
}
void DDPCore::set_sync(bool sync) { impl_->SetSync(sync); }
bool DDPCore::sync() const { return impl_->sync(); }
void DDPCore::zero_grad(bool set_to_none) { impl_->ZeroGrad(set_to_none); }
void DDPCore::begin_join(const JoinOptions& options) { impl_->BeginJoin(options); }
void DDPCore::shadow_others() { impl_->ShadowOthers(); }
void DDPCore::end_join() { impl_->EndJoin(); }
double DDPCore::max_parameter_difference() const { return impl_->MaxParameterDifference(); }
void DDPCore::check_consistency(double atol) const { impl_->CheckConsistency(atol); }
double DDPCore::max_gradient_difference(const at::Tensor& reference_loss) const {
  return impl_->MaxGradientDifference(reference_loss);
}
Stats DDPCore::stats() const { return impl_->GetStats(); }
const World& DDPCore::world() const { return impl_->world(); }

}  // namespace muster
