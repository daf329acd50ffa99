#include "worker_sdk/ddp_impl.h"

namespace muster {
namespace {

// Nanoseconds, zero where nothing was measured, to milliseconds.
double Milliseconds(const at::DDPLoggingData& data, const char* key) {
  const auto found = data.ints_map.find(key);
  return found == data.ints_map.end() ? 0 : static_cast<double>(found->second) / 1e6;
}

}  // namespace

double DDPCore::Impl::MaxParameterDifference(std::string* worst) const {
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

double DDPCore::Impl::MaxGradientDifference(const at::Tensor& reference_loss) const {
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

Stats DDPCore::Impl::GetStats() const {
  RequireEngine();
  const at::DDPLoggingData data = logger_->get_ddp_logging_data();
  Stats stats;
  stats.bucket_bytes = logger_->get_bucket_sizes();
  stats.buckets_are_final = !reducer_->should_rebuild_buckets();
  stats.forward_ms = Milliseconds(data, "avg_forward_compute_time");
  stats.backward_ms = Milliseconds(data, "avg_backward_compute_time");
  stats.communication_ms = Milliseconds(data, "avg_backward_comm_time");
  stats.overlap_ms = Milliseconds(data, "avg_backward_compute_comm_overlap_time");
  return stats;
}

}  // namespace muster
