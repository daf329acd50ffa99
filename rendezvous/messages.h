#ifndef MUSTER_RENDEZVOUS_MESSAGES_H_
#define MUSTER_RENDEZVOUS_MESSAGES_H_

// What agents and master say to each other, as plain values. The machines, the local rendezvous of
// single-node jobs and the simulator use these; proto/rendezvous.proto is the same set on the wire
// (rendezvous/message_codec.h).
//
// Fencing: a message that belongs to a generation carries its number. What names an older
// generation than the receiver's is answered with the current state and never acted on. (Job
// instance and node incarnation are bound to the stream by Hello.)

#include "rendezvous/agent_messages.h"
#include "rendezvous/assignment.h"
#include "rendezvous/master_messages.h"

#endif  // MUSTER_RENDEZVOUS_MESSAGES_H_
