#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <string>

#include "tests/sim/shrink.h"

// A failed seed prints what was broken, how it came to that, and the command that replays it.

namespace muster::sim {
namespace {

// Sanitizers make everything slower.
#if defined(__SANITIZE_ADDRESS__) || defined(MUSTER_FEWER_SEEDS)
constexpr uint64_t kSeedsPerShard = 250;
#else
constexpr uint64_t kSeedsPerShard = 1000;
#endif

void ExpectKept(uint64_t seed) {
  const Result result = Simulate(seed, false);
  EXPECT_EQ(result.violation, "") << Report(seed, result);
}

class Seeds : public testing::TestWithParam<uint64_t> {};

TEST_P(Seeds, KeepEveryPromise) {
  for (uint64_t i = 0; i < kSeedsPerShard && !HasFailure(); ++i) {
    ExpectKept(GetParam() * 1000 + i + 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Simulation, Seeds, testing::Range<uint64_t>(0, 4));

TEST(Simulation, ASeedDecidesEverything) {
  for (const uint64_t seed : {5, 12, 77, 310}) {
    EXPECT_EQ(Simulate(seed, true).trace, Simulate(seed, true).trace) << "seed " << seed;
  }
}

TEST(Simulation, ATraceChangesNothing) {
  for (const uint64_t seed : {5, 12, 77, 310}) {
    EXPECT_EQ(Simulate(seed, true).actions, Simulate(seed, false).actions) << "seed " << seed;
  }
}

TEST(Simulation, FaultsThatAreLeftOutDoNotChangeTheOthers) {
  for (const uint64_t seed : {5, 12, 77, 310}) {
    const Result whole = Simulate(seed, true);
    EXPECT_EQ(Simulate(seed, true, &whole.struck).trace, whole.trace) << "seed " << seed;
    const std::set<int> none = {0};
    EXPECT_EQ(Simulate(seed, false, &none).struck, std::set<int>()) << "seed " << seed;
  }
}

// Seeds that found something, named after what they found. A change of the scenarios or of what the
// machines send gives a seed another story, so each finding also has a test or a transcript of its
// own; the seeds cost nothing and stay.

TEST(Simulation, Seed14592_ANodeWithoutAWardenWasTakenIntoTheNextGeneration) { ExpectKept(14592); }
TEST(Simulation, Seed10013_TheEchoOfALostWardenWasCharged) { ExpectKept(10013); }
TEST(Simulation, Seed807_AnAbandonedJobClosedBesideItsWorkers) { ExpectKept(807); }
TEST(Simulation, Seed19094_AnAbandonedJobBrokeStrictFencing) { ExpectKept(19094); }
TEST(Simulation, Seed61447_TheMemberThatARecoveringMasterMissedWasForgotten) { ExpectKept(61447); }
TEST(Simulation, Seed761_ADrainThatWasForgottenWasTakenForTheEndOfTheWork) { ExpectKept(761); }
TEST(Simulation, Seed871_ALossUnderAMasterThatHadJustWokenWasCharged) { ExpectKept(871); }
TEST(Simulation, Seed125_AMasterThatWokeAtADeadlineDidNotListenFirst) { ExpectKept(125); }
TEST(Simulation, Seed100411_ADrainWasForgottenWithItsMaster) { ExpectKept(100411); }
TEST(Simulation, Seed101138_ADrainWasForgottenWithItsMaster) { ExpectKept(101138); }
TEST(Simulation, Seed105858_AVerdictThatWasNotWrittenYetOpenedANewInstance) { ExpectKept(105858); }
TEST(Simulation, Seed105862_AVerdictThatWasNotWrittenYetOpenedANewInstance) { ExpectKept(105862); }
TEST(Simulation, Seed814_TheEchoOfAFenceThatFellWithoutAMasterWasCharged) { ExpectKept(814); }
TEST(Simulation, Seed312774_TheEchoOfAFenceThatFellOnAFrozenAgentWasCharged) { ExpectKept(312774); }
TEST(Simulation, Seed313063_TheEchoOfAFenceThatFellOnAFrozenAgentWasCharged) { ExpectKept(313063); }
TEST(Simulation, Seed404419_TheEchoOfAFenceThatFellOnAFrozenAgentWasCharged) { ExpectKept(404419); }
TEST(Simulation, Seed314956_AnInstanceBeganBesideTheWorkersOfTheOneBefore) { ExpectKept(314956); }
TEST(Simulation, Seed573649_ASaveOfTheInstanceBeforeWasNotToldApart) { ExpectKept(573649); }
TEST(Simulation, Seed4900_AFrozenAgentStartedAGenerationThatHadBeenGivenUp) { ExpectKept(4900); }

}  // namespace
}  // namespace muster::sim
