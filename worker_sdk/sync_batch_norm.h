#ifndef MUSTER_WORKER_SDK_SYNC_BATCH_NORM_H_
#define MUSTER_WORKER_SDK_SYNC_BATCH_NORM_H_

#include <muster/world.h>

#include <memory>

namespace muster {

// While what it returns lives, batch_norm() in training mode on this thread takes its statistics
// over all ranks of `group`, whichever module calls it. Backward does so without a guard. `group`
// is for this alone: its collectives run between those of backward.
std::shared_ptr<void> SyncBatchNormHere(const World& group);

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_SYNC_BATCH_NORM_H_
