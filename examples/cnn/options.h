#ifndef MUSTER_EXAMPLES_CNN_OPTIONS_H_
#define MUSTER_EXAMPLES_CNN_OPTIONS_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "examples/shared/step_options.h"

namespace cnn {

struct Options {
  std::filesystem::path data;
  int64_t epochs = 4;
  int64_t batch_size = 16;  // per rank
  int64_t shift = 1;        // pixels by which pictures are moved at random, at most
  examples::StepOptions steps = {.lr = 0.05,
                                 .scale_lr = true,
                                 .warmup = 5,
                                 .cosine = true,
                                 .amp = "bf16",
                                 .scaler = false,
                                 .accumulate = 2,
                                 .clip = 1};
  bool amp = true;
  bool sync_batch_norm = true;
  uint64_t seed = 1;
  std::filesystem::path checkpoint_dir;  // empty: no checkpoints
  int64_t checkpoint_every = 0;          // steps; 0: at the end only
  std::filesystem::path save_model;      // empty: not saved
  bool help = false;
};

// Throws examples::UsageError.
Options ParseOptions(const std::vector<std::string>& arguments);

extern const char kHelp[];

}  // namespace cnn

#endif  // MUSTER_EXAMPLES_CNN_OPTIONS_H_
