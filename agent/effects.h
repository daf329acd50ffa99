#ifndef MUSTER_AGENT_EFFECTS_H_
#define MUSTER_AGENT_EFFECTS_H_

#include <string>
#include <variant>
#include <vector>

#include "rendezvous/messages.h"

// What the supervisor machine (agent/supervisor_machine.h) orders, to be performed in order. Plain
// values.

namespace muster {

struct ReservePort {};  // answered by PortReserved
struct OpenStream {};   // to the master
struct SendToMaster {
  AgentMessage message;
};
struct FinishRendezvous {};  // acknowledge the verdict

// Start every local rank of the assignment; each is answered by WorkerSpawned or SpawnFailed.
struct StartWorkers {
  Assignment assignment;
};

// To every descendant of the warden (a SIGCONT follows a signal that ends a process, so that a
// stopped one sees it).
struct SignalTree {
  int signal = 0;
};

// To the worker processes themselves, not to their descendants.
struct SignalWorkers {
  int signal = 0;
};

// Stop this process, as SIGTSTP does by itself. Performed when it has been continued; the kernel
// does not stop what no shell could continue.
struct Suspend {};

// Find out what the threads of a running worker do, for the report. Comes before KillWorker.
struct InspectWorker {
  int local_rank = 0;
  int pid = 0;
};

// SIGKILL to this worker alone, not to its descendants.
struct KillWorker {
  int local_rank = 0;
};

// One datagram to each worker that is connected to its socket.
struct TellWorkers {
  std::string text;
};

// The workers of the generation have ended: their sockets and pipes can go.
struct CloseGeneration {};

enum class NoteLevel { kDebug, kInfo, kWarning, kError };

// A line for the log.
struct Note {
  NoteLevel level = NoteLevel::kInfo;
  std::string text;
};

// The agent's work is over; the process exits with `exit_code`. Always the last effect.
struct End {
  int exit_code = 0;
};

using SupervisorEffect =
    std::variant<ReservePort, OpenStream, SendToMaster, FinishRendezvous, StartWorkers, SignalTree,
                 SignalWorkers, Suspend, InspectWorker, KillWorker, TellWorkers, CloseGeneration,
                 Note, End>;
using SupervisorEffects = std::vector<SupervisorEffect>;

}  // namespace muster

#endif  // MUSTER_AGENT_EFFECTS_H_
