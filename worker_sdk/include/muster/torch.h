#ifndef MUSTER_TORCH_H_
#define MUSTER_TORCH_H_

// Data-parallel training on LibTorch, launched by muster, by torchrun, or by nobody. See
// docs/TRAINING.md.
#include <muster/amp.h>
#include <muster/ddp.h>
#include <muster/error.h>
#include <muster/learning_rate.h>
#include <muster/record.h>
#include <muster/run.h>
#include <muster/sampler.h>
#include <muster/state.h>
#include <muster/state_dict.h>
#include <muster/worker.h>
#include <muster/world.h>

#endif  // MUSTER_TORCH_H_
