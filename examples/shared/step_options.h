#ifndef MUSTER_EXAMPLES_SHARED_STEP_OPTIONS_H_
#define MUSTER_EXAMPLES_SHARED_STEP_OPTIONS_H_

#include <cstdint>
#include <string>

#include "examples/shared/flags.h"

namespace examples {

// How batches become steps; Stepper does it. No LibTorch here.
struct StepOptions {
  double lr = 0.01;
  bool scale_lr = false;   // lr is that of one rank: times their number
  int64_t warmup = 0;      // steps to get to it
  bool cosine = false;     // then down to 0 along a cosine
  std::string amp;         // "bf16", "fp16"; empty: single precision
  bool scaler = false;     // the loss is scaled so that small gradients survive
  int64_t accumulate = 1;  // batches per step
  double clip = 0;         // norm of the gradients; 0: no limit
};

// Those that any trainer may have: --lr, --warmup, --accumulate, --clip.
void AddStepFlags(Flags& flags, StepOptions& options);

}  // namespace examples

#endif  // MUSTER_EXAMPLES_SHARED_STEP_OPTIONS_H_
