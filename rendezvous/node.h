#ifndef MUSTER_RENDEZVOUS_NODE_H_
#define MUSTER_RENDEZVOUS_NODE_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/time.h"
#include "rendezvous/events.h"

namespace muster {

enum class RoundPhase {
  kForming,     // waiting for MIN nodes, the last call, or the back-off after quick failures
  kRecovering,  // a master without memory heard of a running generation and waits for its members
  kRunning,
  kStopping,  // a generation ends: waiting for its members' workers to stop
  kClosed,    // verdict known; waiting for acknowledgements
};

// What the master knows of one agent. Read by status, tests and invariants; written by the round
// machine only.
struct Node {
  std::string id;
  StreamId stream = 0;  // 0: lost (kept while its rank or its fencing matters)
  Hello hello;
  std::string address;       // as the others reach it; known once it is a member
  int group_rank = -1;       // in the current generation; -1: not a member (spare or waiting)
  int last_group_rank = -1;  // remembered for stable ranks
  WorkersPhase phase = WorkersPhase::kNone;  // of the current generation
  bool started = false;                      // WorkersStarted heard
  bool ready = false;                        // WorkersReady heard
  bool leaving = false;
  bool acknowledged = false;  // the verdict
  int next_port = 0;
  Time last_heard{};
  std::string peer_address;       // where its stream comes from
  uint64_t arrival = 0;           // order of admission: who waits longest is taken first
  int64_t stale_generation = 0;   // an older generation whose workers it was told to stop; 0: none
  std::vector<uint64_t> retired;  // incarnations that newer ones replaced, the latest few

  // The last Wait it was sent.
  Reason wait_reason;
  bool waits = false;
  Time wait_sent{};
  Time wait_until = kNever;  // what `at_most` promised
  Time wait_next = kNever;   // when to look again: a renewal, or numbers that have just changed

  bool attached() const { return stream != 0; }
  // Could be a member of the next generation.
  bool is_candidate() const { return attached() && !leaving && stale_generation == 0; }
};

inline int CandidateCount(const std::map<std::string, Node>& nodes) {
  return static_cast<int>(std::count_if(
      nodes.begin(), nodes.end(), [](const auto& entry) { return entry.second.is_candidate(); }));
}

// True while workers may be alive.
inline bool IsAlive(WorkersPhase phase) {
  return phase == WorkersPhase::kRunning || phase == WorkersPhase::kStopping;
}

// One place of a generation and what became of it. The index in the table is the group rank. It
// outlives the node: a member whose workers succeeded may go, and a newer incarnation of its node
// is somebody else.
struct Seat {
  std::string node_id;       // empty: a recovering master has not heard of the member
  uint64_t incarnation = 0;  // 0: likewise, or its name is all that is known
  Assignment assignment;
  WorkersPhase phase = WorkersPhase::kRunning;
  bool lost = false;
  bool awaited = false;  // lost because the master starts again: it may be back any moment
  Time fenced_until = Time::min();  // when lost: its workers may be alive until then
  Time stop_by = kNever;            // when stopping: longer than this is as good as lost

  // Nothing of it stands in the way of the next generation.
  bool HasEnded(Time now) const { return !IsAlive(phase) || (lost && now >= fenced_until); }
};

// In each place's assignment, when they are few and all known.
inline void ListMembers(std::vector<Seat>* seats) {
  if (seats->size() > static_cast<size_t>(Assignment::kMembersListedMax)) return;
  std::vector<std::string> ids;
  for (const Seat& seat : *seats) ids.push_back(seat.node_id);
  if (std::count(ids.begin(), ids.end(), "") > 0) return;
  for (Seat& seat : *seats) seat.assignment.members = ids;
}

inline bool HasSucceeded(const Seat& seat) { return seat.phase == WorkersPhase::kSucceeded; }

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_NODE_H_
