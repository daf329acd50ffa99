// World's collectives: what of a tensor travels, and how it comes back.
#include <ATen/ops/empty.h>
#include <ATen/ops/view_as_real.h>
#include <muster/world.h>

#include <cstring>

#include "worker_sdk/membership.h"
#include "worker_sdk/pending_state.h"

namespace muster {
namespace {

using c10d::ReduceOp;

// A tensor on its way: `dense` is laid out in a row, `wire` is `dense` in a type that can be sent.
struct Parcel {
  at::Tensor tensor, dense, wire;

  // What came, into the tensor it is for.
  void Unpack() const {
    if (wire.is_sparse()) return;
    if (!wire.is_alias_of(dense)) dense.copy_(wire);
    if (!dense.is_alias_of(tensor)) tensor.copy_(dense);
  }
};

at::Tensor InARow(const at::Tensor& tensor) {
  return tensor.detach().resolve_conj().resolve_neg().contiguous();
}

// As bytes, which every backend copies exactly, whatever they mean.
Parcel PackBytes(const at::Tensor& tensor) {
  Parcel parcel{tensor.detach(), InARow(tensor), {}};
  parcel.wire = parcel.dense.reshape({-1}).view(at::kByte);
  return parcel;
}

std::string NameOf(Op op) {
  switch (op) {
    case Op::sum:
      return "sum";
    case Op::mean:
      return "mean";
    case Op::min:
      return "min";
    case Op::max:
      return "max";
  }
  throw Error("no such operation");
}

at::Tensor Reducible(const at::Tensor& dense, Op op) {
  const at::ScalarType type = dense.scalar_type();
  const auto refuse = [&]() -> at::Tensor {
    throw Error("there is no " + NameOf(op) + " of " + std::string(c10::toString(type)) +
                " tensors over the ranks: convert them");
  };
  if (dense.is_complex()) {
    return op == Op::sum || op == Op::mean ? at::view_as_real(dense) : refuse();
  }
  switch (type) {
    case at::kBool:
      return op == Op::mean ? refuse() : dense.view(at::kByte);
    case at::kShort:
    case at::kUInt16:
      return dense.to(at::kInt);
    case at::kUInt32:
      return dense.to(at::kLong);
    case at::kFloat:
    case at::kDouble:
    case at::kHalf:
    case at::kBFloat16:
    case at::kChar:
    case at::kByte:
    case at::kInt:
    case at::kLong:
      return dense;
    default:
      return refuse();
  }
}

Parcel PackNumbers(const at::Tensor& tensor, Op op) {
  if (tensor.is_sparse()) return {tensor.detach(), tensor.detach(), tensor.detach()};
  Parcel parcel{tensor.detach(), InARow(tensor), {}};
  parcel.wire = Reducible(parcel.dense, op);
  return parcel;
}

// The sum of truths is their "or".
ReduceOp::RedOpType WireOp(const at::Tensor& tensor, Op op) {
  const bool truths = tensor.scalar_type() == at::kBool;
  switch (op) {
    case Op::sum:
      return truths ? ReduceOp::MAX : ReduceOp::SUM;
    case Op::mean:
      return ReduceOp::SUM;
    case Op::min:
      return ReduceOp::MIN;
    case Op::max:
      return ReduceOp::MAX;
  }
  throw Error("no such operation");
}

void Divide(const at::Tensor& sum, int ranks) {
  if (at::isIntegralType(sum.scalar_type(), true)) {
    sum.div_(ranks, "trunc");
  } else {
    sum.div_(ranks);
  }
}

void RequireShape(const at::Tensor& output, std::vector<int64_t> sizes, const at::Tensor& input,
                  const char* what) {
  if (output.sizes() == at::IntArrayRef(sizes) && output.is_contiguous() &&
      output.scalar_type() == input.scalar_type()) {
    return;
  }
  throw Error(std::string(what) +
              ": the output must be contiguous, of the input's dtype, and of shape " +
              c10::str(at::IntArrayRef(sizes)) + "; it is of shape " + c10::str(output.sizes()));
}

std::vector<int64_t> GatheredSizes(const at::Tensor& input, int ranks) {
  std::vector<int64_t> sizes = input.sizes().vec();
  sizes.insert(sizes.begin(), ranks);
  return sizes;
}

std::vector<int64_t> ScatteredSizes(const at::Tensor& input, int ranks) {
  std::vector<int64_t> sizes = input.sizes().vec();
  if (sizes.empty() || sizes[0] % ranks != 0) {
    throw Error("reduce_scatter: the first dimension of " + c10::str(input.sizes()) +
                " cannot be split over " + std::to_string(ranks) + " ranks");
  }
  sizes[0] /= ranks;
  return sizes;
}

bool Checked(const World& world) { return world.membership().options.check().on(); }

// The ranks tell each other what they are about to do. What backends make of different collectives
// is a wrong result or a time-out.
void RequireSame(const World& world, const std::string& own) {
  constexpr int64_t kBytes = 128;
  at::Tensor text = at::zeros({kBytes}, at::kByte);
  std::memcpy(text.mutable_data_ptr(), own.data(), std::min<size_t>(own.size(), kBytes - 1));
  std::vector<at::Tensor> inputs = {text.to(world.device())};
  std::vector<std::vector<at::Tensor>> outputs(1);
  for (int rank = 0; rank < world.size(); ++rank) outputs[0].push_back(at::empty_like(inputs[0]));
  world.membership().Guard("check of the next collective",
                           [&] { world.process_group()->allgather(outputs, inputs)->wait(); });
  std::vector<std::string> all;
  for (const at::Tensor& one : outputs[0]) {
    all.emplace_back(static_cast<const char*>(one.cpu().const_data_ptr()));
  }
  for (size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    throw Mismatch("the ranks are in different collectives: rank 0 in " + all[0] + ", rank " +
                   std::to_string(rank) + " in " + all[rank]);
  }
}

void Check(const World& world, const char* what, const at::Tensor& tensor,
           const std::string& detail = "") {
  if (!Checked(world)) return;
  RequireSame(world, what + detail + " of " + c10::str(tensor.sizes()) + " " +
                         c10::toString(tensor.scalar_type()));
}

}  // namespace

Pending::Pending(std::shared_ptr<Membership> membership, const char* what,
                 c10::intrusive_ptr<c10d::Work> work)
    : shared_(std::make_shared<Shared>()) {
  *shared_ = {std::move(membership), what, std::move(work), {}};
}

void Pending::wait() const {
  if (!shared_) return;
  if (shared_->work) {
    shared_->membership->Guard(shared_->what, [&] { shared_->work->wait(); });
  }
  shared_->Finish();
}

bool Pending::done() const { return !shared_ || !shared_->work || shared_->work->isCompleted(); }

Pending& Pending::then(std::function<void()> step) {
  if (!shared_) shared_ = std::make_shared<Shared>();
  shared_->steps.push_back(std::move(step));
  return *this;
}

Pending World::all_reduce_async(const at::Tensor& tensor, Op op) const {
  const at::NoGradGuard no_grad;
  Check(*this, "all_reduce", tensor, " (" + NameOf(op) + ")");
  if (tensor.numel() == 0 && !tensor.is_sparse()) return {};
  const Parcel parcel = PackNumbers(tensor, op);
  c10d::AllreduceOptions options;
  options.reduceOp = WireOp(tensor, op);
  Pending pending(membership_, "all_reduce", membership_->Guard("all_reduce", [&] {
    std::vector<at::Tensor> tensors = {parcel.wire};
    return process_group()->allreduce(tensors, options);
  }));
  return pending.then([parcel, op, ranks = size()] {
    const at::NoGradGuard no_grad_in_step;
    if (op == Op::mean) Divide(parcel.wire, ranks);
    parcel.Unpack();
  });
}

Pending World::broadcast_async(const at::Tensor& tensor, int root) const {
  const at::NoGradGuard no_grad;
  Check(*this, "broadcast", tensor, " from rank " + std::to_string(root));
  if (tensor.numel() == 0) return {};
  const Parcel parcel = PackBytes(tensor);
  c10d::BroadcastOptions options;
  options.rootRank = root;
  Pending pending(membership_, "broadcast", membership_->Guard("broadcast", [&] {
    std::vector<at::Tensor> tensors = {parcel.wire};
    return process_group()->broadcast(tensors, options);
  }));
  return pending.then([parcel] {
    const at::NoGradGuard no_grad_in_step;
    parcel.Unpack();
  });
}

Pending World::all_gather_async(const at::Tensor& tensor, const at::Tensor& output) const {
  const at::NoGradGuard no_grad;
  Check(*this, "all_gather", tensor);
  RequireShape(output, GatheredSizes(tensor, size()), tensor, "all_gather");
  if (tensor.numel() == 0) return {};
  const Parcel parcel = PackBytes(tensor);
  const at::Tensor rows = PackBytes(output).wire.view({size(), -1});
  return {membership_, "all_gather", membership_->Guard("all_gather", [&] {
            std::vector<at::Tensor> inputs = {parcel.wire};
            std::vector<std::vector<at::Tensor>> outputs = {rows.unbind(0)};
            return process_group()->allgather(outputs, inputs);
          })};
}

Pending World::reduce_scatter_async(const at::Tensor& tensor, const at::Tensor& output,
                                    Op op) const {
  const at::NoGradGuard no_grad;
  Check(*this, "reduce_scatter", tensor, " (" + NameOf(op) + ")");
  RequireShape(output, ScatteredSizes(tensor, size()), tensor, "reduce_scatter");
  if (tensor.numel() == 0) return {};
  const Parcel parcel = PackNumbers(tensor, op);
  const Parcel share = PackNumbers(output, op);
  c10d::ReduceScatterOptions options;
  options.reduceOp = WireOp(tensor, op);
  Pending pending(membership_, "reduce_scatter", membership_->Guard("reduce_scatter", [&] {
    std::vector<at::Tensor> outputs = {share.wire};
    std::vector<std::vector<at::Tensor>> inputs = {parcel.wire.chunk(size(), 0)};
    return process_group()->reduce_scatter(outputs, inputs, options);
  }));
  return pending.then([share, op, ranks = size()] {
    const at::NoGradGuard no_grad_in_step;
    if (op == Op::mean) Divide(share.wire, ranks);
    share.Unpack();
  });
}

Pending World::barrier_async() const {
  if (Checked(*this)) RequireSame(*this, "barrier");
  return {membership_, "barrier", membership_->Guard("barrier", [&] {
            c10d::BarrierOptions options;
            options.device = device();
            return process_group()->barrier(options);
          })};
}

void World::all_reduce(const at::Tensor& tensor, Op op) const {
  all_reduce_async(tensor, op).wait();
}

void World::broadcast(const at::Tensor& tensor, int root) const {
  broadcast_async(tensor, root).wait();
}

at::Tensor World::all_gather(const at::Tensor& tensor) const {
  const at::Tensor output = at::empty(GatheredSizes(tensor, size()), tensor.options());
  all_gather_async(tensor, output).wait();
  return output;
}

at::Tensor World::reduce_scatter(const at::Tensor& tensor, Op op) const {
  const at::Tensor output = at::empty(ScatteredSizes(tensor, size()), tensor.options());
  reduce_scatter_async(tensor, output, op).wait();
  return output;
}

void World::barrier() const { barrier_async().wait(); }

}  // namespace muster
