#ifndef MUSTER_DDP_OPTIONS_H_
#define MUSTER_DDP_OPTIONS_H_

#include <muster/comm_hooks.h>
#include <torch/arg.h>

#include <cstdint>
#include <string>
#include <vector>

namespace muster {

// Python's, with its defaults, and `ignore` and `sync_batch_norm` besides. The ranks must agree.
struct DDPOptions {
  TORCH_ARG(bool, find_unused_parameters) = false;  // walk the graph each step; needed for branches
  TORCH_ARG(bool, static_graph) = false;            // the same parameters are used in every step
  TORCH_ARG(bool, gradient_as_bucket_view) = false;  // .grad aliases the bucket: saves a copy
  TORCH_ARG(bool, broadcast_buffers) = true;         // rank 0's buffers, before each forward
  // Batch norm in training takes its statistics over all ranks, whichever module does it. (A batch
  // of one value per channel on a rank is refused by the module before it comes to that.)
  TORCH_ARG(bool, sync_batch_norm) = false;
  TORCH_ARG(double, bucket_cap_mb) = 25;   // MiB per bucket
  TORCH_ARG(double, first_bucket_mb) = 1;  // MiB; bucket_cap_mb if that one is smaller
  TORCH_ARG(std::vector<std::string>,
            ignore) = {};          // names of parameters and buffers to leave alone
  TORCH_ARG(CommHook, comm_hook);  // hooks::fp16(), hooks::bf16(), yours; none: DDP's own
};

// For DistributedDataParallel::join().
struct JoinOptions {
  // True: the sum of the gradients is divided by the number of ranks, whoever still has batches.
  // False: by the number of those that have, so that late batches count more.
  TORCH_ARG(bool, divide_by_initial_world_size) = true;
  // Every rank gets an UnevenInputs as soon as one has run out of batches before the others.
  TORCH_ARG(bool, throw_when_uneven) = false;
};

// How a wrapper works. Times are means over the steps that were measured: the first ten, then one
// in a hundred; 0 before the second step.
struct Stats {
  std::vector<int64_t> bucket_bytes;  // in the order of their all-reduces
  bool buckets_are_final = false;     // they are arranged anew once, by the order of the first step
  double forward_ms = 0;              // of the module alone
  double backward_ms = 0;             // until the last gradient is there
  double communication_ms = 0;        // from the first bucket's start to the last bucket's end
  double overlap_ms = 0;              // the part of it that backward hides
};

}  // namespace muster

#endif  // MUSTER_DDP_OPTIONS_H_
