#include "rendezvous/admission_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

TEST(StreamGate, WithoutLimitsEverythingEnters) {
  StreamGate gate({});
  for (size_t open = 0; open < 100; ++open) EXPECT_EQ(gate.Enter(Time{}, open), std::nullopt);
}

TEST(StreamGate, OnlySoManyAreOpenAtOnce) {
  StreamGate gate({.streams_max = 2});
  EXPECT_EQ(gate.Enter(Time{}, 1), std::nullopt);
  EXPECT_THAT(gate.Enter(Time{}, 2).value_or(""), HasSubstr("--max-agents"));
  EXPECT_EQ(gate.Enter(Time{}, 1), std::nullopt);
}

TEST(StreamGate, ASecondsWorthComesAtOnceAndThenAsTimeAllows) {
  StreamGate gate({.streams_per_second = 4});
  const Time start{};
  for (int i = 0; i < 4; ++i) EXPECT_EQ(gate.Enter(start, 0), std::nullopt) << i;
  EXPECT_THAT(gate.Enter(start, 0).value_or(""), HasSubstr("--joins-per-second"));
  EXPECT_NE(gate.Enter(start + milliseconds(200), 0), std::nullopt);
  EXPECT_EQ(gate.Enter(start + milliseconds(250), 0), std::nullopt);
  EXPECT_NE(gate.Enter(start + milliseconds(250), 0), std::nullopt);
}

TEST(StreamGate, ALongPauseSavesUpNoMoreThanASecondsWorth) {
  StreamGate gate({.streams_per_second = 2});
  const Time start{};
  EXPECT_EQ(gate.Enter(start, 0), std::nullopt);
  const Time later = start + seconds(3600);
  EXPECT_EQ(gate.Enter(later, 0), std::nullopt);
  EXPECT_EQ(gate.Enter(later, 0), std::nullopt);
  EXPECT_NE(gate.Enter(later, 0), std::nullopt);
}

TEST(StreamGate, AFullMasterUsesUpNoTurn) {
  StreamGate gate({.streams_max = 1, .streams_per_second = 1});
  EXPECT_NE(gate.Enter(Time{}, 1), std::nullopt);
  EXPECT_EQ(gate.Enter(Time{}, 0), std::nullopt);
}

}  // namespace
}  // namespace muster
