#include "rendezvous/seat_table.h"

#include <utility>

namespace muster {

void SeatTable::Reset(std::vector<Seat> seats) {
  seats_ = std::move(seats);
  running_ = succeeded_ = drained_ = lost_ = open_ = 0;
  missing_.Clear();
  stops_.Clear();
  fences_.Clear();
  for (size_t rank = 0; rank < seats_.size(); ++rank) Count(rank, 1);
}

void SeatTable::Shift(Duration missed) {
  for (size_t rank = 0; rank < seats_.size(); ++rank) {
    Update(rank, [missed](Seat& seat) {
      for (Time* deadline : {&seat.stop_by, &seat.fenced_until}) {
        if (*deadline != kNever && *deadline != Time::min()) *deadline += missed;
      }
    });
  }
}

size_t SeatTable::ended(Time now) const {
  while (fences_.earliest() <= now) fences_.Set(fences_.first(), kNever);
  return seats_.size() - open_ - fences_.size();
}

void SeatTable::Count(size_t rank, int sign) {
  const Seat& seat = seats_[rank];
  const bool is_alive = IsAlive(seat.phase);
  const bool is_open = is_alive && !seat.lost;
  const auto count = [sign](size_t* counter, bool counts) {
    if (counts) *counter += sign;
  };
  count(&running_, seat.phase == WorkersPhase::kRunning && !seat.lost);
  count(&succeeded_, HasSucceeded(seat));
  count(&drained_, HasSucceeded(seat) && seat.drained);
  count(&lost_, seat.lost);
  count(&open_, is_open);
  if (sign < 0) return missing_.Remove(static_cast<int>(rank));
  if (seat.lost && !HasSucceeded(seat)) missing_.Add(static_cast<int>(rank));
  stops_.Set(rank, is_open ? seat.stop_by : kNever);
  const bool is_fenced = is_alive && seat.lost && seat.fenced_until != Time::min();
  fences_.Set(rank, is_fenced ? seat.fenced_until : kNever);
}

}  // namespace muster
