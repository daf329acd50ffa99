#ifndef MUSTER_EXAMPLES_MNIST_OPTIONS_H_
#define MUSTER_EXAMPLES_MNIST_OPTIONS_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace mnist {

struct Options {
  std::filesystem::path data;
  int64_t epochs = 5;
  int64_t batch_size = 64;  // per rank
  double lr = 0.01;
  std::filesystem::path checkpoint_dir;  // empty: no checkpoints
  int64_t checkpoint_every = 0;          // steps; 0: at the end of each epoch only
  std::filesystem::path save_model;      // empty: not saved
  uint64_t seed = 1;
  bool help = false;
};

// Throws examples::UsageError.
Options ParseOptions(const std::vector<std::string>& arguments);

extern const char kHelp[];

}  // namespace mnist

#endif  // MUSTER_EXAMPLES_MNIST_OPTIONS_H_
