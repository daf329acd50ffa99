#include "worker_sdk/ddp_impl.h"

namespace muster {
namespace {

// Tells Reducer by how many ranks to divide: it asks the Work of an all-reduce.
class LiveRanks : public c10d::Work {
 public:
  explicit LiveRanks(int count)
      : future_(c10::make_intrusive<c10::ivalue::Future>(c10::ListType::ofTensors())) {
    future_->markCompleted(c10::IValue(std::vector<at::Tensor>{at::full({1}, count, at::kInt)}));
  }
  bool isCompleted() override { return true; }
  bool wait(std::chrono::milliseconds) override { return true; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }

 private:
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

}  // namespace

int DDPCore::Impl::Ballot::live() const { return static_cast<int>(votes.size() - joined().size()); }

int DDPCore::Impl::Ballot::highest_live() const {
  const auto highest = std::find_if(votes.rbegin(), votes.rend(), [](int32_t v) { return v != 0; });
  return static_cast<int>(votes.rend() - highest) - 1;
}

bool DDPCore::Impl::Ballot::any(Vote vote) const {
  return std::any_of(votes.begin(), votes.end(), [&](int32_t v) { return (v & vote) != 0; });
}

std::vector<int> DDPCore::Impl::Ballot::joined() const {
  std::vector<int> ranks;
  for (size_t rank = 0; rank < votes.size(); ++rank) {
    if (votes[rank] == kJoined) ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

DDPCore::Impl::Ballot DDPCore::Impl::CollectVotes(int32_t own) const {
  Ballot ballot;
  ballot.votes.assign(static_cast<size_t>(world_.size()), 0);
  ballot.votes[static_cast<size_t>(world_.rank())] = own;
  const at::Tensor all = at::tensor(ballot.votes, at::kInt);
  world_.all_reduce(all);  // on the CPU: Gloo is there with NCCL too
  std::copy_n(all.const_data_ptr<int32_t>(), ballot.votes.size(), ballot.votes.begin());
  return ballot;
}

void DDPCore::Impl::BeginJoin(const JoinOptions& options) {
  RequireEngine();
  if (norm_group_) {
    throw Error("join() with sync_batch_norm: a rank without a batch cannot take part in it");
  }
  if (join_) throw Error("join() within join(): one is enough");
  const at::Tensor own = at::tensor(
      {int64_t{options.divide_by_initial_world_size()}, int64_t{options.throw_when_uneven()}},
      at::kLong);
  const at::Tensor all = world_.all_gather(own);
  if (!all.eq(all[0]).all().item<bool>()) {
    throw Mismatch("the ranks call join() with different options: use the same on every rank");
  }
  join_ = options;
  logger_->set_uneven_input_join();
}

// A rank that still has batches says so before each forward.
void DDPCore::Impl::VoteLive() {
  const Ballot ballot =
      CollectVotes(kHere | (at::GradMode::is_enabled() ? kGrad : 0) | (Arms() ? kSync : 0));
  if (join_->throw_when_uneven() && !ballot.joined().empty()) ThrowUneven(ballot);
  buffer_root_ = ballot.highest_live();
  if (!join_->divide_by_initial_world_size()) {
    reducer_->set_forward_pass_work_handle(c10::make_intrusive<LiveRanks>(ballot.live()), false);
  }
}

// A rank that has none any more takes part in all that the others do, with nothing of its own.
void DDPCore::Impl::ShadowOthers() {
  const at::NoGradGuard no_grad;
  bool last = true;  // nobody had batches left when this rank came
  for (Ballot ballot = CollectVotes(kJoined); ballot.live() > 0; ballot = CollectVotes(kJoined)) {
    last = false;
    if (join_->throw_when_uneven()) ThrowUneven(ballot);
    ShadowStep(ballot);
  }
  const at::Tensor root = at::full({1}, last ? world_.rank() : -1, at::kInt);
  world_.all_reduce(root, Op::max);
  Broadcast(AllNamed(), root.item<int>());
  if (options_.broadcast_buffers()) Broadcast(Buffers(), root.item<int>());
}

void DDPCore::Impl::ShadowStep(const Ballot& ballot) {
  if (ballot.any(kGrad)) Guard("join", [&] { reducer_->rebuild_buckets(); });
  buffer_root_ = ballot.highest_live();
  SyncBuffers();
  buffers_are_due_ = ballot.any(kSync);
  if (!buffers_are_due_) return;
  Guard("join", [&] {
    ShadowBuckets();
    if (Walks()) {
      std::vector<at::Tensor> used = {reducer_->get_local_used_map_on_device()};
      world_.process_group()->allreduce(used)->wait();
    }
    reducer_->push_rebuilt_params_for_all_indices();
  });
}

void DDPCore::Impl::ShadowBuckets() {
  std::vector<c10::intrusive_ptr<c10::ivalue::Future>> reductions;
  std::vector<c10d::GradBucket> buckets = reducer_->get_grad_buckets(/*return_zero_tensors=*/true);
  for (c10d::GradBucket& bucket : buckets) reductions.push_back(reducer_->run_comm_hook(bucket));
  for (const auto& reduction : reductions) reduction->waitAndThrow();
}

void DDPCore::Impl::EndJoin() {
  join_.reset();
  buffer_root_ = 0;
  if (reducer_) reducer_->set_forward_pass_work_handle(nullptr, true);
}

void DDPCore::Impl::ThrowUneven(const Ballot& ballot) const {
  const std::vector<int> out = ballot.joined();
  throw UnevenInputs(RanksText(out) + " of " + std::to_string(world_.size()) +
                         " ran out of batches before the others",
                     out);
}

}  // namespace muster
