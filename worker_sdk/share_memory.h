#ifndef MUSTER_WORKER_SDK_SHARE_MEMORY_H_
#define MUSTER_WORKER_SDK_SHARE_MEMORY_H_

#include <c10/util/intrusive_ptr.h>

#include <memory>

#include "worker_sdk/host_memory.h"

namespace c10d {
class Store;
}

namespace muster {

// Collective: memory for all ranks, or nullptr on all of them, where one does not want it or cannot
// open it. Throws what the store throws, in its time.
std::shared_ptr<HostMemory> ShareMemory(const c10::intrusive_ptr<c10d::Store>& of_group, int rank,
                                        int ranks, bool wanted);

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_SHARE_MEMORY_H_
