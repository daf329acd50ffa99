#ifndef MUSTER_AGENT_EVENTS_H_
#define MUSTER_AGENT_EVENTS_H_

#include <string>
#include <variant>
#include <vector>

#include "agent/effects.h"
#include "base/exit_status.h"
#include "rendezvous/messages.h"
#include "rendezvous/rendezvous_client.h"

// What the supervisor machine (agent/supervisor_machine.h) is told; what it orders is in
// agent/effects.h. Plain values.

namespace muster {

// The node is ready to join. Comes first, once.
struct Begin {};

// A port was set aside for the next generation's store (answer to ReservePort). 0: none to be had,
// `problem` says why.
struct PortReserved {
  int port = 0;
  std::string problem;
};

struct FromMaster {
  MasterMessage message;
};

// The stream to the master ended. `unreachable`: it never carried a message.
struct MasterLost {
  bool unreachable = false;
  std::string detail;
  Obstacle obstacle = Obstacle::kNone;
};

// After FinishRendezvous: the job needs nothing of this node any more.
struct RendezvousDone {};

struct WorkerSpawned {
  int local_rank = 0;
  int pid = 0;
};

// The worker could not be started. `exit_code`: 127 not found, 126 cannot be executed, 71 no
// process to be had.
struct SpawnFailed {
  int local_rank = 0;
  int exit_code = 0;
  std::string problem;
};

// Reaped. `tree_empty`: nothing that the warden started, nor a descendant of it, is alive any more.
struct WorkerExited {
  int local_rank = 0;
  ExitStatus status;
  bool tree_empty = false;
  FailureEvidence evidence = {};  // of the first bad end of a generation
};

// The last descendant is gone.
struct TreeEmptied {};

// A line from a worker's socket.
struct WorkerSaid {
  int local_rank = 0;
  std::string key;
  std::string value;
};

// To the launcher. `forward_only`: one of --signals-to-forward. `sender_pid` 0: the kernel or a
// terminal.
struct SignalReceived {
  int signal = 0;
  int sender_pid = 0;
  bool forward_only = false;
};

// Ctrl-Z, or SIGTSTP from somebody else, to the launcher.
struct SuspendAsked {};

// The warden died; the kernel has killed its workers and the shell has swept the rest.
struct WardenLost {};

// The moment that NextDeadline() named.
struct TimeCame {};

using SupervisorEvent =
    std::variant<Begin, PortReserved, FromMaster, MasterLost, RendezvousDone, WorkerSpawned,
                 SpawnFailed, WorkerExited, TreeEmptied, WorkerSaid, SignalReceived, SuspendAsked,
                 WardenLost, TimeCame>;

}  // namespace muster

#endif  // MUSTER_AGENT_EVENTS_H_
