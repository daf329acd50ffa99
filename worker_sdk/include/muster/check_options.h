#ifndef MUSTER_CHECK_OPTIONS_H_
#define MUSTER_CHECK_OPTIONS_H_

#include <torch/arg.h>

#include <cstdint>

namespace muster {

// The check that a job makes of itself while it trains. With it on, before each collective of World
// the ranks compare what they are about to do, and a DistributedDataParallel asks the three
// questions: was no index handed out twice in an epoch by the DistributedSamplers, do all ranks
// hold the same parameters, and are the gradients the mean over the ranks? A "no" is a Mismatch on
// every rank. Rank 0 writes the first answers to stderr.
//
// Where they are set, MUSTER_CHECK (1 or 0) and MUSTER_CHECK_EVERY (a number of steps) win over
// what is said here. The ranks must agree.
struct CheckOptions {
  TORCH_ARG(bool, on) = false;  // costs a small collective more for each of World's
  // The data split and the parameters are compared in the first step that averages gradients, and
  // in each so many of them. Steps within join() do not count.
  TORCH_ARG(int64_t, every) = 100;
  // With or without `on`: rank 0 warns when ranks begin with the same batch, which is what a
  // sampler that knows nothing of ranks leads to. In the first step of a wrapper outside of join(),
  // once; 16 bytes per rank are sent for it.
  TORCH_ARG(bool, warn_of_same_batch) = true;
};

}  // namespace muster

#endif  // MUSTER_CHECK_OPTIONS_H_
