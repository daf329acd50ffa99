#ifndef MUSTER_RENDEZVOUS_SEAT_H_
#define MUSTER_RENDEZVOUS_SEAT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/time.h"
#include "rendezvous/messages.h"

namespace muster {

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
  bool drained = false;  // its workers succeeded because they were told to end
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

#endif  // MUSTER_RENDEZVOUS_SEAT_H_
