#include "agent/master_link.h"

#include <gtest/gtest.h>

#include <set>

namespace muster {
namespace {

using namespace std::chrono_literals;
using Action = MasterLink::Action;

const Time kStart{std::chrono::hours(1)};

JobSettings Settings() {
  JobSettings settings;
  settings.keep_alive_interval = 5s;
  settings.keep_alive_max_attempt = 3;
  return settings;
}

TEST(MasterLink, HasNothingToDoUntilAStreamIsOpened) {
  const MasterLink link(Settings(), true, 1);
  EXPECT_EQ(link.Due(kStart), Action::kNone);
  EXPECT_EQ(link.NextDeadline(), kNever);
}

TEST(MasterLink, AHeartbeatIsDueEachInterval) {
  MasterLink link(Settings(), true, 1);
  link.Opened(kStart);
  EXPECT_EQ(link.NextDeadline(), kStart + 5s);
  EXPECT_EQ(link.Due(kStart + 5s - 1ns), Action::kNone);
  EXPECT_EQ(link.Due(kStart + 5s), Action::kHeartbeat);
  EXPECT_EQ(link.NextSequence(kStart + 6s), 1u);
  EXPECT_EQ(link.Due(kStart + 6s), Action::kNone);
  EXPECT_EQ(link.NextDeadline(), kStart + 11s) << "from its sending, not from when it was due";
}

TEST(MasterLink, TheMasterVouchesFromTheSendingOfWhatItAnswered) {
  MasterLink link(Settings(), true, 1);
  link.Opened(kStart);
  link.Heard(kStart + 3s);
  EXPECT_EQ(link.vouched_at(), kStart);
  link.NextSequence(kStart + 5s);
  link.NextSequence(kStart + 10s);
  link.Heard(kStart + 11s);
  EXPECT_EQ(link.vouched_at(), kStart) << "anything but an acknowledgement proves nothing new";
  link.Acknowledged(1);
  EXPECT_EQ(link.vouched_at(), kStart + 5s);
  link.Acknowledged(2);
  EXPECT_EQ(link.vouched_at(), kStart + 10s);
  link.Acknowledged(1);
  EXPECT_EQ(link.vouched_at(), kStart + 10s) << "it never goes back";
}

TEST(MasterLink, ALeaseWithoutAnAnswerMeansANewStream) {
  MasterLink link(Settings(), true, 1);
  link.Opened(kStart);
  for (const Duration at : {5s, 10s}) link.NextSequence(kStart + at);
  EXPECT_EQ(link.Due(kStart + 15s - 1ns), Action::kNone);
  EXPECT_EQ(link.Due(kStart + 15s), Action::kOpen) << "the Hello was never answered";
  link.Opened(kStart + 15s);
  link.Heard(kStart + 16s);
  EXPECT_EQ(link.Due(kStart + 19s), Action::kNone) << "the old stream's heartbeats do not count";
}

TEST(MasterLink, AnsweredHeartbeatsKeepTheStream) {
  MasterLink link(Settings(), true, 1);
  link.Opened(kStart);
  link.Heard(kStart);
  for (Time now = kStart + 5s; now < kStart + 10min; now += 5s) {
    ASSERT_EQ(link.Due(now), Action::kHeartbeat);
    link.Acknowledged(link.NextSequence(now));
  }
}

TEST(MasterLink, TheBackOffDoublesUpToFiveSecondsAndHalfOfItIsChance) {
  std::set<Duration> firsts;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    MasterLink link(Settings(), true, seed);
    Time now = kStart;
    Duration whole = 100ms;
    for (int attempt = 0; attempt < 100; ++attempt) {
      link.Opened(now);
      link.Lost(now);
      const Duration wait = link.NextDeadline() - now;
      EXPECT_GE(wait, whole / 2);
      EXPECT_LE(wait, whole);
      if (attempt == 0) firsts.insert(wait);
      EXPECT_EQ(link.Due(now + wait - 1ns), Action::kNone);
      EXPECT_EQ(link.Due(now + wait), Action::kOpen);
      now += wait;
      whole = std::min<Duration>(2s, whole * 2);
    }
  }
  EXPECT_GT(firsts.size(), 10u) << "agents of a dead master must not come back in step";
}

TEST(MasterLink, AnAnswerEndsTheBackOff) {
  MasterLink link(Settings(), true, 1);
  for (int i = 0; i < 10; ++i) {
    link.Opened(kStart);
    link.Lost(kStart);
  }
  link.Opened(kStart);
  link.Heard(kStart);
  link.Lost(kStart);
  EXPECT_LE(link.NextDeadline(), kStart + 100ms);
}

TEST(MasterLink, WithoutHeartbeatsAnOpenStreamNeedsNothing) {
  MasterLink link(Settings(), false, 1);
  link.Opened(kStart);
  EXPECT_EQ(link.NextDeadline(), kNever);
  EXPECT_EQ(link.Due(kStart + 24h), Action::kNone);
}

TEST(MasterLink, OnceClosedItStaysClosed) {
  MasterLink link(Settings(), true, 1);
  link.Opened(kStart);
  link.NextSequence(kStart + 5s);
  link.Close();
  link.Lost(kStart + 6s);
  EXPECT_EQ(link.NextDeadline(), kNever);
  EXPECT_EQ(link.Due(kStart + 24h), Action::kNone);
}

TEST(MasterLink, AnObstacleMustStandForItsTimeWithoutABreak) {
  MasterLink link(Settings(), true, 1);
  link.Lost(kStart, Obstacle::kForeign);
  EXPECT_FALSE(link.is_blocked(kStart, false));
  link.Lost(kStart + 9s, Obstacle::kNone);
  link.Lost(kStart + 10s, Obstacle::kForeign);
  EXPECT_FALSE(link.is_blocked(kStart + 20s - 1ns, false));
  EXPECT_TRUE(link.is_blocked(kStart + 20s, false));
  link.Lost(kStart + 20s, Obstacle::kSilent);
  EXPECT_FALSE(link.is_blocked(kStart + 50s - 1ns, false));
  EXPECT_TRUE(link.is_blocked(kStart + 50s, false));
}

TEST(MasterLink, SilenceIsBorneForTwoLeases) {
  JobSettings settings = Settings();
  settings.keep_alive_interval = 1min;
  MasterLink link(settings, true, 1);
  link.Lost(kStart, Obstacle::kSilent);
  EXPECT_FALSE(link.is_blocked(kStart + 6min - 1ns, false));
  EXPECT_TRUE(link.is_blocked(kStart + 6min, false));
}

TEST(MasterLink, WhoHasHeardAMasterIsNotBlocked) {
  MasterLink link(Settings(), true, 1);
  link.Opened(kStart);
  link.Heard(kStart);
  link.Lost(kStart, Obstacle::kForbidden);
  EXPECT_FALSE(link.is_blocked(kStart + 1h, false));
}

TEST(MasterLink, ARefusalIsFinalWhileNoMasterHasSpoken) {
  MasterLink link(Settings(), true, 1);
  link.Opened(kStart);
  link.Lost(kStart, Obstacle::kRefused);
  EXPECT_TRUE(link.is_blocked(kStart, false));
}

// Streams on which the master speaks, or does not, before it refuses what is said; how many until
// the node gives up, of ten.
int RefusalsUntilTheEnd(bool speaks, bool has_workers, Duration between) {
  MasterLink link(Settings(), true, 1);
  Time now = kStart;
  link.Opened(now);
  link.Heard(now);
  for (int refusals = 1; refusals <= 10; ++refusals) {
    link.Lost(now, Obstacle::kRefused);
    if (link.is_blocked(now, has_workers)) return refusals;
    now += between;
    link.Opened(now);
    if (speaks) link.Heard(now);
  }
  return 0;
}

TEST(MasterLink, ThreeRefusalsInARowAreTheEndButForWorkersOfAMasterThatSaysNothing) {
  for (const bool has_workers : {false, true}) {
    EXPECT_EQ(RefusalsUntilTheEnd(true, has_workers, 10s), 3);
    EXPECT_EQ(RefusalsUntilTheEnd(true, has_workers, 1min), 0);
  }
  EXPECT_EQ(RefusalsUntilTheEnd(false, false, 10s), 3);
  EXPECT_EQ(RefusalsUntilTheEnd(false, true, 10s), 0);
}

}  // namespace
}  // namespace muster
