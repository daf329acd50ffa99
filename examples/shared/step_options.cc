#include "examples/shared/step_options.h"

namespace examples {

void AddStepFlags(Flags& flags, StepOptions& options) {
  flags.Number("--lr", options.lr, 0, "a learning rate from 0 on");
  flags.Count("--warmup", options.warmup, 0, "a number of steps from 0 on");
  flags.Count("--accumulate", options.accumulate, 1, "a number of batches from 1 on");
  flags.Number("--clip", options.clip, 0, "a norm from 0 on");
}

}  // namespace examples
