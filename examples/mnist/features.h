#ifndef MUSTER_EXAMPLES_MNIST_FEATURES_H_
#define MUSTER_EXAMPLES_MNIST_FEATURES_H_

#include <muster/torch.h>

#include <string>

#include "examples/mnist/options.h"

// From flags to the SDK's options: where to look for what a flag switches on.
namespace mnist {

muster::InitOptions Joining(const Options& options);
muster::SamplerOptions Sampling(const Options& options);
muster::DDPOptions Wrapping(const Options& options);
muster::CheckpointOptions Checkpoints(const Options& options);

// For --stats: a few lines.
std::string StatsText(const muster::Stats& stats);

}  // namespace mnist

#endif  // MUSTER_EXAMPLES_MNIST_FEATURES_H_
