#ifndef MUSTER_RENDEZVOUS_RESTART_BACKOFF_H_
#define MUSTER_RENDEZVOUS_RESTART_BACKOFF_H_

#include <cstdint>

#include "base/time.h"

namespace muster {

// How long to wait before the next generation after quick failures. The first restart is immediate;
// from the second quick failure in a row on the wait is 1 s, 2 s, 4 s …, less up to a quarter of it
// at random, so that jobs that fail for the same outside reason do not come back in step.
class RestartBackoff {
 public:
  explicit RestartBackoff(uint64_t seed) : random_state_(seed) {}

  // Counts a failure and returns the wait, which is never longer than `longest`.
  Duration AfterFailure(bool is_quick, Duration longest);

  // A generation that got going ends the row.
  void Reset() { in_a_row_ = 0; }

  // As many quick failures in a row as another one had counted.
  void Restore(int in_a_row) { in_a_row_ = in_a_row; }
  int in_a_row() const { return in_a_row_; }

 private:
  uint64_t NextRandom();

  uint64_t random_state_;
  int in_a_row_ = 0;
};

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_RESTART_BACKOFF_H_
