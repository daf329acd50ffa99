#ifndef MUSTER_COMM_HOOKS_H_
#define MUSTER_COMM_HOOKS_H_

#include <ATen/core/Tensor.h>
#include <muster/pending.h>

#include <functional>
#include <string>
#include <vector>

namespace c10d {
class GradBucket;
}

namespace muster {

class World;

// The gradients of some parameters, as they are about to be averaged.
class Bucket {
 public:
  explicit Bucket(c10d::GradBucket& bucket) : bucket_(bucket) {}  // LibTorch's, borrowed
  // One-dimensional (sparse for a sparse parameter): this rank's gradients, not divided. What it
  // holds when the hook's Pending is done is what every parameter gets.
  at::Tensor gradients() const;
  std::vector<at::Tensor> per_parameter() const;  // views into gradients()
  std::vector<at::Tensor> parameters() const;
  size_t index() const;
  bool last() const;  // of this backward

 private:
  c10d::GradBucket& bucket_;
};

// How a bucket's gradients are averaged, in place of DDP's own all-reduce. Called during backward,
// once per bucket, in one order on all ranks; it must not block. Ranks that run out of batches
// within join() call it with zeros.
struct CommHook {
  std::string name;  // the ranks must agree on it; empty: DDP's own
  std::function<Pending(const World&, Bucket&)> run;  // the hook itself
};

namespace hooks {

CommHook allreduce();  // divides, then sums
CommHook fp16();       // the same in half precision: half the bytes; 65504 is the largest number
CommHook bf16();       // the same in bfloat16: 8 bits of mantissa, no overflow

}  // namespace hooks
}  // namespace muster

#endif  // MUSTER_COMM_HOOKS_H_
