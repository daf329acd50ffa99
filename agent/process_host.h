#ifndef MUSTER_AGENT_PROCESS_HOST_H_
#define MUSTER_AGENT_PROCESS_HOST_H_

#include <string>
#include <vector>

#include "agent/warden_protocol.h"

namespace muster {

// The agent's only door to worker processes. Calls return at once; what becomes of them comes as
// WardenAnswers. Implementations: WardenHost, and a fake for tests. Loop thread only.
class ProcessHost {
 public:
  virtual ~ProcessHost() = default;

  // `fds` become the worker's stdout and stderr (two) or stdin too (three); they stay the caller's.
  virtual void Spawn(SpawnRequest request, const std::vector<int>& fds) = 0;

  virtual void Signal(const SignalRequest& request) = 0;

  // Replaces the one before; {} takes it back.
  virtual void SetLastWill(const LastWillRequest& will) = 0;
  virtual void SetFence(const FenceRequest& fence) = 0;
};

}  // namespace muster

#endif  // MUSTER_AGENT_PROCESS_HOST_H_
