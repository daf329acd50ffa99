#include "rendezvous/restart_backoff.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

namespace muster {
namespace {

using namespace std::chrono_literals;

TEST(RestartBackoff, TheFirstRestartIsImmediateAndWaitsDoubleUpToThirtySeconds) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    RestartBackoff backoff(seed);
    EXPECT_EQ(backoff.AfterFailure(true, 30s), 0s);
    Duration longest = 1s;
    for (int failure = 2; failure < 40; ++failure) {
      const Duration wait = backoff.AfterFailure(true, 30s);
      EXPECT_LE(wait, longest);
      EXPECT_GT(wait, longest * 3 / 4);
      longest = std::min<Duration>(longest * 2, 30s);
    }
  }
}

TEST(RestartBackoff, NoWaitIsLongerThanTheLongest) {
  RestartBackoff patient(1);
  RestartBackoff hasty(1);
  RestartBackoff immediate(1);
  Duration last{};
  for (int failure = 1; failure < 100; ++failure) {
    last = patient.AfterFailure(true, 24h);
    EXPECT_LE(last, 24h);
    EXPECT_LE(hasty.AfterFailure(true, 100ms), 100ms);
    EXPECT_EQ(immediate.AfterFailure(true, 0s), 0s);
  }
  EXPECT_GT(last, 17h);
}

TEST(RestartBackoff, AFailureThatIsNotQuickEndsTheRow) {
  RestartBackoff backoff(1);
  backoff.AfterFailure(true, 30s);
  backoff.AfterFailure(true, 30s);
  EXPECT_EQ(backoff.AfterFailure(false, 30s), 0s);
  EXPECT_EQ(backoff.in_a_row(), 0);
  EXPECT_EQ(backoff.AfterFailure(true, 30s), 0s);
}

TEST(RestartBackoff, SeedsDecideTheJitter) {
  RestartBackoff one(1);
  RestartBackoff same(1);
  RestartBackoff other(2);
  for (RestartBackoff* backoff : {&one, &same, &other}) backoff->AfterFailure(true, 30s);
  const Duration wait = one.AfterFailure(true, 30s);
  EXPECT_EQ(wait, same.AfterFailure(true, 30s));
  EXPECT_NE(wait, other.AfterFailure(true, 30s));
}

}  // namespace
}  // namespace muster
