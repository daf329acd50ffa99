#ifndef MUSTER_WORKER_SDK_GLOO_BACKEND_H_
#define MUSTER_WORKER_SDK_GLOO_BACKEND_H_

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <memory>
#include <string>

#include "worker_sdk/host_memory.h"

namespace c10d {
class Backend;
class Store;
}  // namespace c10d

namespace muster {

// Where Gloo listens. An interface wins over a host; neither: GLOO_SOCKET_IFNAME, else what the
// host name resolves to.
struct GlooAddress {
  std::string interface;
  std::string host;
};

// Connects all ranks with each other; blocks until they are. Throws what LibTorch throws. What
// HostCollectives can do goes over `memory`, if there is any.
c10::intrusive_ptr<c10d::Backend> MakeGlooBackend(const c10::intrusive_ptr<c10d::Store>& store,
                                                  int rank, int size,
                                                  std::chrono::milliseconds timeout,
                                                  const GlooAddress& address,
                                                  std::shared_ptr<HostMemory> memory);

// What c10d::ProcessGroup::setTimeout() does to a backend of MakeGlooBackend(); LibTorch 2.8 has no
// such function.
void SetGlooTimeout(c10d::Backend& gloo, std::chrono::milliseconds timeout);

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_GLOO_BACKEND_H_
