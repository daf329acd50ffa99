#ifndef MUSTER_AGENT_AGENT_LOOP_H_
#define MUSTER_AGENT_AGENT_LOOP_H_

#include <functional>
#include <memory>

#include "agent/agent_options.h"
#include "rendezvous/rendezvous_client.h"

namespace muster {

using RendezvousFactory = std::function<std::unique_ptr<RendezvousClient>(const AgentOptions&)>;

// Runs one node of a job: forks the warden, joins through the client that `factory` makes, and
// returns the exit code of the launcher (docs/EXIT_CODES.md) when nothing that was started is alive
// any more. Call it once, from the main thread, before any other thread exists; it blocks the
// handled signals for the process.
int RunAgent(const AgentOptions& options, const RendezvousFactory& factory);

}  // namespace muster

#endif  // MUSTER_AGENT_AGENT_LOOP_H_
