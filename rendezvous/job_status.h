#ifndef MUSTER_RENDEZVOUS_JOB_STATUS_H_
#define MUSTER_RENDEZVOUS_JOB_STATUS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "rendezvous/incident_record.h"
#include "rendezvous/incident_recorder.h"
#include "rendezvous/round_machine.h"

// What people and other programs are told of a job. Plain values, copied out of the machine; all
// spans of time are by the master's monotonic clock at the moment of the copy.

namespace muster {

enum class NodeState {
  kWaiting,    // attached and no member: `reason` says for what
  kSpare,      // a member as soon as there is a place
  kStarting,   // its workers are being started
  kRunning,    // all its workers run
  kReady,      // and have said READY=1
  kStopping,   // its workers have been told to stop
  kStopped,    // they have
  kSucceeded,  // its workers have all exited with 0
  kLeaving,    // it goes away on purpose
  kLost,       // its connection is gone, and nothing had told that it would be
  kDraining,   // its workers end at their next commit point, and then it goes
  kLeft,       // it has gone in order: on purpose, or with the verdict
};

inline constexpr size_t kNodeStates = 12;

struct NodeStatus {
  std::string id;  // empty: a member that a recovering master has not heard of yet
  NodeState state = NodeState::kWaiting;
  std::string address;                // as the others reach it, or where its stream comes from
  int group_rank = -1;                // in the current generation; -1: no member
  int first_rank = -1;                // global rank of its first worker; -1: no member
  int slots = 0;                      // its workers
  std::optional<Duration> heard_ago;  // since the last message; nothing: it is not attached
  std::optional<int64_t> step;  // of its worker that is furthest behind, as of the last heartbeat;
                                // nothing: none has said STEP
  std::optional<Duration> progress_ago;  // since that changed
  std::string reason_label;              // of its wait; empty: it waits for nothing
  std::string reason;                    // one sentence
  std::optional<Duration> time_left;     // until the wait's deadline
};

struct JobStatus {
  std::string job_id;
  uint64_t instance = 0;
  RoundPhase phase = RoundPhase::kForming;
  int64_t generation = 0;
  std::optional<Duration> generation_age;  // nothing: no generation runs, or since an older master
  std::string reason_label;
  std::string reason;                 // one sentence: why the job is where it is
  std::optional<Duration> time_left;  // until the deadline of what it waits for

  int nodes_min = 0;  // 0: no node has come yet
  int nodes_max = 0;
  int members = 0;     // nodes of the current generation
  int waiting = 0;     // attached nodes that are no members
  int world_size = 0;  // workers of the current generation
  int restarts_used = 0;
  int restarts_max = 0;

  // Of the node that is furthest behind, in the current generation or the one that ended last.
  std::optional<int64_t> step;
  std::optional<Duration> progress_ago;
  // Workers of the members by the state of their node (NodeState).
  std::array<int, kNodeStates> workers{};

  std::optional<Verdict> verdict;
  std::vector<NodeStatus> nodes;  // members by group rank, then the others by name; may be left out
  std::vector<IncidentRecord> incidents;  // the oldest first; may be left out
};

enum class StatusDetail { kSummary, kFull };

// `kSummary` leaves out nodes and incidents: with thousands of nodes copying them takes some
// milliseconds.
JobStatus StatusOf(const RoundMachine& machine, const IncidentRecorder& recorder, Time now,
                   StatusDetail detail);

// "forming", "recovering", "running", "stopping", "closed".
const char* Label(RoundPhase phase);
// "waiting", "spare", "starting", ...
const char* Label(NodeState state);

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_JOB_STATUS_H_
