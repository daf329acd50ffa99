#ifndef MUSTER_RENDEZVOUS_AGENT_MESSAGES_H_
#define MUSTER_RENDEZVOUS_AGENT_MESSAGES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/time.h"
#include "rendezvous/assignment.h"
#include "rendezvous/settings.h"
#include "rendezvous/worker_failed.h"

// Agent → master (rendezvous/messages.h).

namespace muster {

// What the workers of one node are doing.
enum class WorkersPhase { kNone, kRunning, kStopping, kStopped, kSucceeded };

// How far the workers of a node have come.
struct Progress {
  int64_t generation = 0;
  int64_t step = 0;  // the latest STEP of the worker that is furthest behind
  Duration since{};  // since that changed
  bool operator==(const Progress&) const = default;
};

// Also the only way in which progress is told: it is never worth a message of its own.
struct Heartbeat {
  uint64_t sequence = 0;
  std::optional<Progress> progress = {};  // nothing: no worker of the generation has said STEP
  bool operator==(const Heartbeat&) const = default;
};

// All workers of the node have been started.
struct WorkersStarted {
  int64_t generation = 0;
  bool operator==(const WorkersStarted&) const = default;
};

// All workers of the node have said READY=1.
struct WorkersReady {
  int64_t generation = 0;
  bool operator==(const WorkersReady&) const = default;
};

// Nothing of the generation is alive on the node any more (or its workers have quiesced). `fenced`:
// nobody had asked for it; no master had answered the node for master_loss_timeout.
struct WorkersStopped {
  int64_t generation = 0;
  int next_port = 0;
  bool fenced = false;
  bool operator==(const WorkersStopped&) const = default;
};

// What an agent runs when it (re-)attaches: a master without memory rebuilds the job from these.
struct Running {
  WorkersPhase phase = WorkersPhase::kNone;
  Assignment assignment;  // meaningful unless phase is kNone
  // The failure of that generation on this node: nobody may have heard of it yet.
  std::optional<WorkerFailed> failure = {};
  bool drained = false;  // as in WorkersSucceeded
  bool fenced = false;   // as in WorkersStopped; also while they are being stopped
  bool operator==(const Running&) const = default;
};

// The first message of every stream.
struct Hello {
  std::string job_id;
  JobSettings settings;
  std::string node_id;
  // Random per agent process; a newer Hello of the same node id replaces the older one.
  uint64_t incarnation = 0;
  // Counts the streams of this process. A Hello that a later one has overtaken counts for nothing.
  uint64_t attempt = 0;
  int slots = 1;  // workers this node runs
  std::string role = "default";
  int fixed_group_rank = -1;               // --node-rank in static mode, else -1
  std::string local_addr;                  // --local-addr, else empty
  std::vector<std::string> own_addresses;  // of this node, the one that routes to the master first
  std::string dialled_host;                // the endpoint's host as this agent dials it
  // Reserved for the store of the next generation, should this node get group rank 0.
  int next_port = 0;
  std::string fixed_master_addr;  // static mode: --master-addr, else empty
  int fixed_master_port = 0;      // static mode: --master-port, else 0
  std::string topology_key;
  Running running;
  bool attached_before = false;  // this process has been answered by a master of the job already

  bool operator==(const Hello&) const = default;
};

// The job's state is saved: a worker has said CHECKPOINT=. Under join policy checkpoint only.
struct CommitPoint {
  int64_t generation = 0;
  bool operator==(const CommitPoint&) const = default;
};

// All workers of the node exited with 0. `drained`: as told, and not because their work is done.
struct WorkersSucceeded {
  int64_t generation = 0;
  int next_port = 0;
  bool drained = false;
  bool operator==(const WorkersSucceeded&) const = default;
};

enum class LeaveCause { kSignal, kDrained, kOperator };

// The node goes away on purpose; its workers have been told to stop. Its WorkersStopped follows.
struct Leaving {
  int64_t generation = 0;
  LeaveCause cause = LeaveCause::kSignal;
  std::string detail;  // "SIGTERM from pid 812"
  bool operator==(const Leaving&) const = default;
};

// The only message of a stream opened by a warden whose agent died: the workers of that generation
// are gone.
struct LastWill {
  std::string job_id;
  std::string node_id;
  uint64_t incarnation = 0;
  int64_t generation = 0;
  bool operator==(const LastWill&) const = default;
};

using AgentMessage = std::variant<Hello, Heartbeat, WorkersStarted, WorkersReady, WorkersStopped,
                                  WorkerFailed, WorkersSucceeded, Leaving, LastWill, CommitPoint>;

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_AGENT_MESSAGES_H_
