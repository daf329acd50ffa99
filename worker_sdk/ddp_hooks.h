#ifndef MUSTER_WORKER_SDK_DDP_HOOKS_H_
#define MUSTER_WORKER_SDK_DDP_HOOKS_H_

#include <muster/comm_hooks.h>
#include <muster/world.h>

#include <memory>

namespace c10d {
class CommHookInterface;
}

namespace muster {

// A user's hook as Reducer calls it.
std::unique_ptr<c10d::CommHookInterface> AdaptHook(CommHook hook, World world);

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_DDP_HOOKS_H_
