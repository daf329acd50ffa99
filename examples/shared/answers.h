#ifndef MUSTER_EXAMPLES_SHARED_ANSWERS_H_
#define MUSTER_EXAMPLES_SHARED_ANSWERS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// The three questions that every data-parallel run should be able to answer. No LibTorch here.
namespace examples {

struct Answers {
  // Each rank's samples of one epoch, those left out that were repeated to make the shares even.
  std::vector<std::vector<size_t>> shares;
  size_t samples = 0;  // in the data set
  double parameter_difference = 0;
  double gradient_difference = 0;
  // What gradient_difference may be: sums over a batch in another order, in single precision.
  double rounding = 1e-6;
  // NaN or infinite, on all ranks together: no difference between such says anything.
  int64_t lost_parameters = 0;
  int64_t lost_gradients = 0;
  size_t left_out = 0;  // so many samples are to be in no share
  // What is not as in training when gradients are compared; may be empty.
  std::string compared = {};
};

struct Verdict {
  std::string text;  // three lines
  bool ok = false;
};

Verdict Judge(const Answers& answers, bool colour);

}  // namespace examples

#endif  // MUSTER_EXAMPLES_SHARED_ANSWERS_H_
