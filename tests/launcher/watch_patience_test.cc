#include "launcher/watch_patience.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

using namespace std::chrono_literals;

const absl::Status kGone = absl::UnavailableError("connection refused");
const absl::Status kSilent = absl::DeadlineExceededError("it does not answer");
const absl::Status kUnknown = absl::NotFoundError("there is no such job");

class WatchPatienceTest : public testing::Test {
 protected:
  // How long to wait; zero: the watch ends.
  Duration Wait(const absl::Status& why) {
    const auto next = patience_.NextTry(now_, why);
    return next ? *next - now_ : Duration::zero();
  }

  Time now_{1h};
  WatchPatience patience_{1h};
};

TEST_F(WatchPatienceTest, AMasterThatNeverAnsweredIsNotLookedFor) { EXPECT_EQ(Wait(kGone), 0s); }

TEST_F(WatchPatienceTest, TriesComeEverMoreSlowly) {
  patience_.Heard();
  for (const Duration wait : {100ms, 200ms, 400ms, 800ms, 1600ms, 3200ms, 5000ms, 5000ms}) {
    EXPECT_EQ(Wait(kGone), wait);
  }
  patience_.Heard();
  EXPECT_FALSE(patience_.is_lost());
  EXPECT_EQ(Wait(kSilent), 100ms);
  EXPECT_TRUE(patience_.is_lost());
}

TEST_F(WatchPatienceTest, ItEndsSoLongAfterTheLoss) {
  patience_.Heard();
  Wait(kGone);
  now_ += 1h - 1ns;
  EXPECT_NE(Wait(kGone), 0s);
  now_ += 1ns;
  EXPECT_EQ(Wait(kGone), 0s);
  WatchPatience none(0s);
  none.Heard();
  EXPECT_EQ(none.NextTry(now_, kGone), std::nullopt);
}

TEST_F(WatchPatienceTest, AJobThatTheNextMasterDoesNotKnowMayStillComeBack) {
  patience_.Heard();
  EXPECT_EQ(Wait(kUnknown), 0s) << "the master that knew it says that it has gone";
  Wait(kGone);
  EXPECT_NE(Wait(kUnknown), 0s);
  now_ += 29s;
  EXPECT_NE(Wait(kUnknown), 0s);
  Wait(kGone);
  EXPECT_NE(Wait(kUnknown), 0s) << "yet another master";
  now_ += 30s;
  EXPECT_EQ(Wait(kUnknown), 0s);
}

TEST_F(WatchPatienceTest, AProxyThatStandsForAMasterThatHasGoneIsWaitedFor) {
  const absl::Status proxy = absl::UnimplementedError("what listens there is no master");
  patience_.Heard();
  EXPECT_EQ(Wait(proxy), 0s) << "the master that answered does not know the call";
  Wait(kGone);
  EXPECT_NE(Wait(proxy), 0s);
}

TEST_F(WatchPatienceTest, WhatIsWrongForGoodEndsIt) {
  patience_.Heard();
  Wait(kGone);
  EXPECT_EQ(Wait(absl::UnauthenticatedError("another token")), 0s);
}

}  // namespace
}  // namespace muster
