#include "worker_sdk/run_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "worker_sdk/commit_rhythm.h"

namespace muster {
namespace {

using testing::ElementsAre;
using namespace std::chrono_literals;

constexpr BodyEnd kEnds[] = {BodyEnd::kReturned, BodyEnd::kDrained, BodyEnd::kGroupLost,
                             BodyEnd::kFailedOnAll, BodyEnd::kFailedAlone};

std::vector<RunFacts> AllFacts() {
  std::vector<RunFacts> all;
  for (int bits = 0; bits < 8; ++bits)
    all.push_back({(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0});
  return all;
}

TEST(RunPlan, BeginsFromTheNewestCheckpointAndSaysReadyBeforeTheBody) {
  for (const RunFacts& facts : AllFacts()) {
    const auto steps = StepsAtStart(facts);
    if (facts.has_file) {
      EXPECT_THAT(steps, ElementsAre(RunStep::kLoad, RunStep::kReady, RunStep::kBody));
    } else {
      EXPECT_THAT(steps, ElementsAre(RunStep::kReady, RunStep::kBody));
    }
  }
}

TEST(RunPlan, WhatComesAfterEachEnd) {
  using S = RunStep;
  const RunFacts nothing{}, file{true, false, false}, leader{true, true, false};
  const RunFacts changes{true, true, true};
  const struct {
    BodyEnd end;
    RunFacts facts;
    std::vector<RunStep> steps;
  } table[] = {
      {BodyEnd::kReturned, nothing, {S::kFinish}},
      {BodyEnd::kReturned, file, {S::kSave, S::kWait, S::kFinish}},
      {BodyEnd::kReturned, leader, {S::kSave, S::kWait, S::kFinish}},
      {BodyEnd::kDrained, nothing, {S::kEndDrained}},
      {BodyEnd::kDrained, file, {S::kSave, S::kWait, S::kEndDrained}},
      {BodyEnd::kGroupLost, nothing, {S::kRethrow}},
      {BodyEnd::kGroupLost, file, {S::kRethrow}},
      {BodyEnd::kGroupLost, leader, {S::kSaveRemembered, S::kRethrow}},
      {BodyEnd::kGroupLost, changes, {S::kQuiesce, S::kRejoin, S::kRollBack, S::kBody}},
      {BodyEnd::kFailedOnAll, leader, {S::kRethrow}},
      {BodyEnd::kFailedAlone, nothing, {S::kTellPeers, S::kRethrow}},
      {BodyEnd::kFailedAlone, file, {S::kTellPeers, S::kRethrow}},
      {BodyEnd::kFailedAlone, leader, {S::kTellPeers, S::kSaveRemembered, S::kRethrow}},
      {BodyEnd::kFailedAlone, changes, {S::kTellPeers, S::kSaveRemembered, S::kRethrow}},
  };
  for (const auto& [end, facts, steps] : table) {
    EXPECT_EQ(StepsAfter(end, facts), steps) << static_cast<int>(end);
  }
}

TEST(RunPlan, EveryPlanComesToAnEndOrToTheBodyAndRanksAgreeOnCollectives) {
  const auto is_end = [](RunStep step) {
    return step == RunStep::kFinish || step == RunStep::kEndDrained || step == RunStep::kRethrow ||
           step == RunStep::kBody;
  };
  const auto collectives = [](std::vector<RunStep> steps) {
    std::erase_if(steps, [](RunStep step) {
      return step != RunStep::kLoad && step != RunStep::kSave && step != RunStep::kWait;
    });
    return steps;
  };
  for (const BodyEnd end : kEnds) {
    for (RunFacts facts : AllFacts()) {
      const auto steps = StepsAfter(end, facts);
      ASSERT_FALSE(steps.empty());
      EXPECT_TRUE(is_end(steps.back()));
      EXPECT_EQ(std::count_if(steps.begin(), steps.end(), is_end), 1);
      facts.leader = !facts.leader;
      EXPECT_EQ(collectives(StepsAfter(end, facts)), collectives(steps));
    }
  }
}

// ── Commits ─────────────────────────────────────────────────────────────────────────────────────

// Ranks that commit together, each at its own pace and with its own clock.
struct Ranks {
  std::vector<Duration> pace;
  std::vector<CommitRhythm> rhythms = std::vector<CommitRhythm>(pace.size());
  std::vector<Time> now = std::vector<Time>(pace.size(), Time(1h));
  Duration cost{};
  int commits = 0, meetings = 0, remembered = 0;
  CommitNews heard = {};

  void Commit(bool drain_on_last = false) {
    ++commits;
    std::vector<bool> meet;
    for (size_t i = 0; i < pace.size(); ++i) {
      now[i] += pace[i];
      meet.push_back(rhythms[i].Count());
    }
    EXPECT_EQ(std::count(meet.begin(), meet.end(), meet[0]), static_cast<long>(meet.size()));
    if (!meet[0]) return;
    ++meetings;
    CommitNews all;
    for (size_t i = 0; i < pace.size(); ++i) {
      const CommitNews own =
          rhythms[i].Tell(now[i], i == 0, drain_on_last && i + 1 == pace.size(), false);
      all.drain = std::max(all.drain, own.drain);
      all.remember = std::max(all.remember, own.remember);
      all.failed = std::max(all.failed, own.failed);
      all.commit_ns = std::max(all.commit_ns, own.commit_ns);
    }
    for (size_t i = 0; i < pace.size(); ++i) rhythms[i].Heard(all, now[i]);
    heard = all;
    if (all.remember == 0) return;
    ++remembered;
    for (size_t i = 0; i < pace.size(); ++i) {
      rhythms[i].Remembered(now[i], now[i] + cost);
      now[i] += cost;
    }
  }
};

TEST(CommitRhythm, RanksMeetAtTheSameCommitsWhateverTheirClocksSay) {
  Ranks ranks{{1ms, 3ms, 2ms}};
  ranks.now[1] += 5h;
  for (int i = 0; i < 1000; ++i) ranks.Commit();
  // About each 20 ms of the slowest.
  EXPECT_GT(ranks.meetings, 1000 * 3 / 20 / 2);
  EXPECT_LT(ranks.meetings, 1000 * 3 / 20 * 2);
}

TEST(CommitRhythm, SlowStepsMeetInEachAndTheFirstOneIsRemembered) {
  Ranks ranks{{1s, 2s}};
  ranks.Commit();
  EXPECT_EQ(ranks.remembered, 1);
  for (int i = 0; i < 9; ++i) ranks.Commit();
  EXPECT_EQ(ranks.meetings, 10);
}

TEST(CommitRhythm, StepsThatBecomeSlowAreNoticedSoon) {
  Ranks ranks{{10us}};
  for (int i = 0; i < 20'000; ++i) ranks.Commit();
  ranks.pace = {100ms};
  const int before = ranks.meetings;
  for (int i = 0; i < 1100; ++i) ranks.Commit();
  EXPECT_GT(ranks.meetings - before, 50);
}

TEST(CommitRhythm, RememberingCostsAFiftiethOfTheTimeAtMost) {
  Ranks ranks{{10ms, 10ms}};
  ranks.cost = 50ms;
  for (int i = 0; i < 10'000; ++i) ranks.Commit();
  EXPECT_GE(ranks.remembered, 30);
  EXPECT_LE(ranks.remembered, 41);  // 100 s / (50 x 50 ms)
}

TEST(CommitRhythm, ADrainThatOneRankIsAskedForIsHeardByAll) {
  Ranks ranks{{1ms, 1ms, 1ms}};
  ranks.Commit();
  EXPECT_EQ(ranks.heard.drain, 0);
  int more = 0;
  for (; ranks.heard.drain == 0; ++more) ranks.Commit(/*drain_on_last=*/true);
  EXPECT_LE(more, 20);
}

TEST(CommitRhythm, OnlyRankZeroSpeaksOfWhatOnlyItKnows) {
  const CommitRhythm fresh;
  EXPECT_EQ(fresh.Tell(Time(1s), true, false, true), (CommitNews{0, 1, 1, 0}));
  EXPECT_EQ(fresh.Tell(Time(1s), false, true, true), (CommitNews{1, 0, 0, 0}));
}

}  // namespace
}  // namespace muster
