#ifndef MUSTER_TESTS_FAKES_MESSAGE_TEXT_H_
#define MUSTER_TESTS_FAKES_MESSAGE_TEXT_H_

#include <string>

#include "rendezvous/messages.h"

// Messages as tests, transcripts and the stories of simulations show them.

namespace muster {

// "WorkersStopped{3, port 4001}"
std::string Text(const AgentMessage& message);
// "stop generation=3: rank 0 on node a failed: exit code 1"
std::string Text(const MasterMessage& message);
// "running"
const char* Text(WorkersPhase phase);

}  // namespace muster

#endif  // MUSTER_TESTS_FAKES_MESSAGE_TEXT_H_
