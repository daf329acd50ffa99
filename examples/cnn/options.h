#ifndef MUSTER_EXAMPLES_CNN_OPTIONS_H_
#define MUSTER_EXAMPLES_CNN_OPTIONS_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace cnn {

struct Options {
  std::filesystem::path data;
  int64_t epochs = 4;
  int64_t batch_size = 16;  // per rank
  int64_t accumulate = 2;   // batches per step
  double lr = 0.05;         // of one rank
  int64_t warmup = 5;       // steps
  double clip = 1;          // norm of the gradients; 0: no limit
  int64_t shift = 1;        // pixels by which pictures are moved at random, at most
  bool amp = true;
  bool sync_batch_norm = true;
  uint64_t seed = 1;
  std::filesystem::path save_model;  // empty: not saved
  bool help = false;
};

// Throws examples::UsageError.
Options ParseOptions(const std::vector<std::string>& arguments);

extern const char kHelp[];

}  // namespace cnn

#endif  // MUSTER_EXAMPLES_CNN_OPTIONS_H_
