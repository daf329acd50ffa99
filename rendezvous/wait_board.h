#ifndef MUSTER_RENDEZVOUS_WAIT_BOARD_H_
#define MUSTER_RENDEZVOUS_WAIT_BOARD_H_

#include <array>
#include <functional>
#include <vector>

#include "base/time.h"
#include "rendezvous/formation_gate.h"
#include "rendezvous/roster.h"
#include "rendezvous/round_output.h"

namespace muster {

// Keeps everybody who waits informed of why, and until when at the latest. Who has just begun to
// wait is told at once, or when Hold::untold has passed: ten thousand members that stop need not
// hear that they wait for each other when all have stopped a moment later. When only numbers
// change, all hear of it together and once in a while.
class WaitBoard {
 public:
  struct Rules {
    std::function<WaitKind(const Node&)> kind_of;
    std::function<Hold(WaitKind)> hold_of;
    Duration renewal{};  // how long a Wait holds where nobody can say how long
  };

  // After a step: looks at the nodes that the roster says were touched, and tells whom it concerns.
  void Update(Time now, const Rules& rules, Roster* roster, RoundOutput* output);

  // When Update has to be called again.
  Time NextDeadline() const;

 private:
  // What all who wait for one thing have been told.
  struct Notice {
    Reason reason;
    Time sent = Time::min();  // Time::min(): nobody has been told
    Time until = kNever;      // the earliest that one of them was promised
    Time next = kNever;       // when to look again: `until`, or numbers that have just changed
  };

  using Nodes = std::vector<Node*>;
  static std::array<Nodes, kWaitKinds> SortTouched(const Rules& rules, Roster* roster);

  std::array<Notice, kWaitKinds> notices_;
};

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_WAIT_BOARD_H_
