#ifndef MUSTER_CHECK_RING_H_
#define MUSTER_CHECK_RING_H_

#include <vector>

#include "base/time.h"
#include "base/unique_fd.h"
#include "check/channel.h"
#include "check/findings.h"

namespace muster::check {

// An all-reduce as simple as can be: each rank sends to the next one and receives from the one
// before, over one TCP connection each. What Gloo and NCCL reach over TCP is seldom much less. One
// thread.
class Ring {
 public:
  Ring(int rank, int size) : rank_(rank), size_(size) {}

  // Connects to the next rank, and waits at the listener for the one before. 0, or an errno.
  int Form(const Target& next, const Listener& listener, Time deadline);
  // Makes `data` the sum over the ranks, which all call it with as many numbers. 0, or an errno.
  int Sum(std::vector<double>* data, Time deadline);

 private:
  int Exchange(const double* out, size_t out_count, double* in, size_t in_count, Time deadline);

  int rank_;
  int size_;
  UniqueFd to_next_;
  UniqueFd from_previous_;
};

// Times it: the median of many small ones, and of a few large ones. Every rank of the ring calls
// it.
AllReduce MeasureRing(Ring* ring, int rank, int size, Time deadline);

// What each link carries in an all-reduce of so many bytes that took so long, in bytes per second:
// nccl-tests calls it the bus bandwidth.
double LinkBandwidth(double bytes, int ranks, double seconds);

}  // namespace muster::check

#endif  // MUSTER_CHECK_RING_H_
