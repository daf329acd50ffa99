#include "worker_sdk/ddp_impl.h"

namespace muster {
namespace {

// Nanoseconds, zero where nothing was measured, to milliseconds.
double Milliseconds(const at::DDPLoggingData& data, const char* key) {
  const auto found = data.ints_map.find(key);
  return found == data.ints_map.end() ? 0 : static_cast<double>(found->second) / 1e6;
}

Mismatch Strayed(const std::string& parameter, const std::vector<int>& ranks, double apart) {
  Mismatch error("parameter " + parameter + " is not on " + RanksText(ranks) +
                     " what it is on rank 0; it differs by up to " + std::to_string(apart) +
                     ": was it changed outside of the optimizer?",
                 parameter);
  error.everywhere = true;
  return error;
}

}  // namespace

double DDPCore::Impl::DifferenceFromLeader(const at::Tensor& parameter) const {
  const at::Tensor leaders = parameter.detach().clone();
  world_.broadcast(leaders, 0);
  return MaxDifference(parameter, leaders);
}

double DDPCore::Impl::MaxParameterDifference() const {
  double largest = 0;
  for (const auto& [name, parameter] : parameters_) {
    largest = std::max(largest, DifferenceFromLeader(parameter));
  }
  const at::Tensor all = at::tensor({largest}, at::kDouble);
  world_.all_reduce(all, Op::max);  // on the CPU: Gloo is there with NCCL too
  return all.item<double>();
}

void DDPCore::Impl::CheckConsistency(double atol) const {
  // By rank and parameter: what is to be the same.
  std::vector<int64_t> hashes;
  for (const auto& [name, parameter] : parameters_) {
    hashes.push_back(atol == 0 ? HashOf(parameter) : DifferenceFromLeader(parameter) > atol);
  }
  const at::Tensor all = world_.all_gather(at::tensor(hashes, at::kLong));
  const at::Tensor differs = all.ne(all[0]).cpu();
  if (!differs.any().item<bool>()) return;
  const auto first = differs.any(0).to(at::kInt).argmax().item<int64_t>();
  const auto& [name, parameter] = parameters_[static_cast<size_t>(first)];
  std::vector<int> ranks;
  for (int rank = 0; rank < world_.size(); ++rank) {
    if (differs[rank][first].item<bool>()) ranks.push_back(rank);
  }
  const at::Tensor apart = at::tensor({DifferenceFromLeader(parameter)}, at::kDouble);
  world_.all_reduce(apart, Op::max);
  throw Strayed(name, ranks, apart.item<double>());
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
