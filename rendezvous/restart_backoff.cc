#include "rendezvous/restart_backoff.h"

#include <algorithm>
#include <chrono>

namespace muster {
namespace {

constexpr Duration kFirstWait = std::chrono::seconds(1);
// So that doubling ends before it overflows.
constexpr int kDoublingsMax = 30;

}  // namespace

Duration RestartBackoff::AfterFailure(bool is_quick, Duration longest) {
  in_a_row_ = is_quick ? in_a_row_ + 1 : 0;
  if (in_a_row_ < 2) return Duration::zero();
  const int doublings = std::min(in_a_row_ - 2, kDoublingsMax);
  const Duration wait = std::min(kFirstWait * (1 << doublings), longest);
  const uint64_t thousandths = NextRandom() % 250;
  return wait - wait / 1000 * static_cast<int64_t>(thousandths);
}

// splitmix64: the same sequence on every platform, which <random>'s distributions do not promise.
uint64_t RestartBackoff::NextRandom() {
  random_state_ += 0x9e3779b97f4a7c15;
  uint64_t mixed = random_state_;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
  return mixed ^ (mixed >> 31);
}

}  // namespace muster
