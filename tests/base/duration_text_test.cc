#include "base/duration_text.h"

#include <gtest/gtest.h>

#include <chrono>

namespace muster {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

TEST(DurationText, ReadsUnitsAndSecondsWithout) {
  EXPECT_EQ(ParseDuration("30"), seconds(30));
  EXPECT_EQ(ParseDuration("0.1"), milliseconds(100));
  EXPECT_EQ(ParseDuration("250ms"), milliseconds(250));
  EXPECT_EQ(ParseDuration("1.5s"), milliseconds(1500));
  EXPECT_EQ(ParseDuration("5m"), minutes(5));
  EXPECT_EQ(ParseDuration("2h"), hours(2));
  EXPECT_EQ(ParseDuration("10000d"), hours(240000));
}

TEST(DurationText, RefusesEverythingElse) {
  for (const char* text : {"", "s", ".", "-1", "+1", " 1", "1 ", "1x", "1e3", "0x1", "1.2.3", "inf",
                           "10001d", "99999999999999999999"}) {
    EXPECT_EQ(ParseDuration(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace muster
