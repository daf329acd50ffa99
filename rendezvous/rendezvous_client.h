#ifndef MUSTER_RENDEZVOUS_RENDEZVOUS_CLIENT_H_
#define MUSTER_RENDEZVOUS_RENDEZVOUS_CLIENT_H_

#include <optional>
#include <string>
#include <variant>

#include "rendezvous/messages.h"

namespace muster {

// What keeps this node from a master, where that is more than "nobody is there".
enum class Obstacle {
  kNone,
  kForbidden,  // this node is where the master belongs, and may not listen on that port
  kForeign,    // what listens there speaks another protocol
  kSilent,     // what listens there takes connections and does not answer
  kRefused,    // a master is there, and one of the two does not take the other's messages
};

// The stream is gone. `unreachable`: it never carried a message (refused, no route, name unknown).
struct StreamEnded {
  bool unreachable = false;
  std::string detail;  // one line: endpoint, resolved address, cause
  Obstacle obstacle = Obstacle::kNone;
};

// After Finish(): nothing on this node is needed by the job any more (a hosted master has no more
// agents to serve).
struct RendezvousFinished {};

using ClientEvent = std::variant<MasterMessage, StreamEnded, RendezvousFinished>;

// One node's connection to the master of its job; the agent's only door to it. All calls come from
// the agent's loop thread and return at once. Implementations: LocalRendezvous (single-node jobs:
// the round machine in this process, no gRPC) and GrpcRendezvous (hosts the master when it can bind
// the endpoint, else dials it).
class RendezvousClient {
 public:
  virtual ~RendezvousClient() = default;

  // Opens a new stream (an older one is dropped without an event). The caller sends its Hello right
  // after. Failure comes as StreamEnded. Where this node may host the master, each call first tries
  // to.
  virtual void Open() = 0;

  // Queues a message on the open stream; without one it is dropped (the next Hello tells all).
  virtual void Send(AgentMessage message) = 0;

  // Acknowledges the verdict: half-closes the stream. RendezvousFinished follows, at once or when
  // the other agents have gone too.
  virtual void Finish() = 0;

  // Readable while Receive() has something to give. Level-triggered; valid for the object's life.
  virtual int fd() const = 0;

  // The next event in order, or nothing.
  virtual std::optional<ClientEvent> Receive() = 0;
};

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_RENDEZVOUS_CLIENT_H_
