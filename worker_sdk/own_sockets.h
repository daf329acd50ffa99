#ifndef MUSTER_WORKER_SDK_OWN_SOCKETS_H_
#define MUSTER_WORKER_SDK_OWN_SOCKETS_H_

#include <cstdint>
#include <set>
#include <utility>

namespace muster {

// Connected TCP sockets of this process: descriptor and inode, so that a number that is used again
// is told apart.
using OwnSockets = std::set<std::pair<int, uint64_t>>;

OwnSockets ConnectedSockets();
// Those that are in `now` only.
OwnSockets Since(const OwnSockets& before, const OwnSockets& now);
// As if the other ends had ended what they send: whoever waits for that in this process is told at
// once. The descriptors stay open, and what is written goes on its way: Gloo forgets to wake those
// who wait for a send that was refused.
void ShutDown(const OwnSockets& sockets);

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_OWN_SOCKETS_H_
