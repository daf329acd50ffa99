#ifndef MUSTER_RENDEZVOUS_WORKER_FAILED_H_
#define MUSTER_RENDEZVOUS_WORKER_FAILED_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/exit_status.h"
#include "base/time.h"

// Agent → master, and in a verdict to all agents (rendezvous/messages.h).

namespace muster {

// What every node's report quotes of a worker's end. Texts may be empty or have several lines.
struct FailureEvidence {
  static constexpr size_t kBytesMax = 4096;  // of message and stderr_tail each

  std::string host = {};         // name of its machine
  int64_t unix_ms = 0;           // its end on that machine's clock, since 1970; 0: not known
  std::string message = {};      // what the worker said of its error
  std::string hint = {};         // what the kernel says: out of memory, where the core dump is
  bool out_of_memory = false;    // the kernel killed it for lack of memory, as far as is known
  std::string stderr_tail = {};  // last lines
  std::string log_path = {};     // of its stderr, on its machine
  bool operator==(const FailureEvidence&) const = default;
};

// One worker ended badly; the agent stops the others of its node. Never sent for an ordered stop.
struct WorkerFailed {
  int64_t generation = 0;
  int local_rank = 0;
  int rank = 0;
  int pid = 0;
  ExitStatus status;
  Duration uptime{};        // from its start to its end
  bool was_ready = false;   // it had said READY=1
  std::string message;      // what the worker said of its error, one line; may be empty
  bool can_restart = true;  // false when no restart can help: the program cannot be executed
  FailureEvidence evidence = {};
  bool operator==(const WorkerFailed&) const = default;
};

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_WORKER_FAILED_H_
