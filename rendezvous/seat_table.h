#ifndef MUSTER_RENDEZVOUS_SEAT_TABLE_H_
#define MUSTER_RENDEZVOUS_SEAT_TABLE_H_

#include <algorithm>
#include <cstddef>
#include <vector>

#include "rendezvous/deadlines.h"
#include "rendezvous/rank_set.h"
#include "rendezvous/seat.h"

namespace muster {

// The places of a generation by group rank, with what the round machine asks of all of them after
// every message: how many have ended, how many succeeded, when the next one has to.
class SeatTable {
 public:
  const std::vector<Seat>& all() const { return seats_; }
  size_t size() const { return seats_.size(); }
  bool empty() const { return seats_.empty(); }
  const Seat& operator[](size_t rank) const { return seats_[rank]; }

  void Reset(std::vector<Seat> seats);
  // Changes one: `change(Seat&)`.
  template <typename Change>
  void Update(size_t rank, Change change) {
    Count(rank, -1);
    change(seats_[rank]);
    Count(rank, 1);
  }
  // The master did not run for so long.
  void Shift(Duration missed);

  size_t running() const { return running_; }         // not lost, and not told to stop
  size_t succeeded() const { return succeeded_; }     // all their workers exited with 0
  size_t drained() const { return drained_; }         // of these: as they were told
  size_t missing() const { return missing_.size(); }  // lost before they had succeeded
  const RankSet& missing_ranks() const { return missing_; }
  size_t lost() const { return lost_; }
  bool AllSucceeded() const { return !empty() && succeeded_ == size(); }

  // Nothing of so many stands in the way of the next generation.
  size_t ended(Time now) const;
  // When the next place has to have stopped, or its fence falls; kNever: there is none.
  Time NextDeadline() const { return std::min(stops_.earliest(), fences_.earliest()); }
  // When the last of them will have; Time::min(): all have.
  Time LastDeadline() const { return std::max(stops_.latest(), fences_.latest()); }
  Time LastFence() const { return fences_.latest(); }
  Time next_stop() const { return stops_.earliest(); }
  size_t next_to_stop() const { return stops_.first(); }

 private:
  void Count(size_t rank, int sign);

  std::vector<Seat> seats_;
  size_t running_ = 0;
  size_t succeeded_ = 0;
  size_t drained_ = 0;
  RankSet missing_;
  size_t lost_ = 0;
  size_t open_ = 0;  // alive and not lost
  Deadlines stops_;  // by rank: of those that are open
  // By rank: of those that are lost and may be alive. Fences that have fallen are dropped on the
  // way.
  mutable Deadlines fences_;
};

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_SEAT_TABLE_H_
