#ifndef MUSTER_EXAMPLES_MNIST_OPTIONS_H_
#define MUSTER_EXAMPLES_MNIST_OPTIONS_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "examples/shared/step_options.h"

namespace mnist {

struct Options {
  std::filesystem::path data;
  int64_t epochs = 5;
  int64_t batch_size = 64;  // per rank
  uint64_t seed = 1;
  bool shuffle = true;
  bool drop_last = false;  // leave samples out instead of repeating some to make the shares even
  bool join = false;       // the ranks have parts of different sizes
  examples::StepOptions steps;

  bool batch_norm = false;       // the network has one
  bool sync_batch_norm = false;  // it has one, over all ranks
  std::string hook;              // "allreduce", "fp16", "bf16"; empty: DDP's own
  double bucket_mb = 25;         // MiB
  bool bucket_view = false;
  bool static_graph = false;
  bool find_unused = false;
  bool broadcast_buffers = true;
  bool check_consistency = false;  // after each epoch
  bool stats = false;              // at the end

  std::string backend = "auto";
  std::filesystem::path interface;  // of the network; empty: the SDK's choice
  int64_t init_timeout = 600;       // seconds
  int64_t op_timeout = 600;         // seconds

  std::filesystem::path checkpoint_dir;  // empty: no checkpoints
  int64_t checkpoint_every = 0;          // steps; 0: at the end of each epoch only
  int64_t keep = 0;                      // files; 0: the SDK's choice
  bool async = false;                    // written while the training goes on
  std::filesystem::path save_model;      // empty: not saved
  bool help = false;
};

// Throws examples::UsageError.
Options ParseOptions(const std::vector<std::string>& arguments);

extern const char kHelp[];

}  // namespace mnist

#endif  // MUSTER_EXAMPLES_MNIST_OPTIONS_H_
