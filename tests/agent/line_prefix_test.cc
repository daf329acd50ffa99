#include "agent/line_prefix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const PrefixValues kValues = {"trainer", "1", "9", "gpu7", "node-3", "4", "812"};

std::string Expand(const char* text_template) {
  return LinePrefix(text_template).Expand(kValues, "12:00");
}

TEST(LinePrefixTest, EveryMacroIsReplaced) {
  EXPECT_EQ(Expand("[${role_name}${local_rank}]:"), "[trainer1]:");
  EXPECT_EQ(Expand("${rank} ${hostname} ${node} ${generation} ${pid} ${time}"),
            "9 gpu7 node-3 4 812 12:00");
  EXPECT_EQ(Expand("${rank}${rank}"), "99");
}

TEST(LinePrefixTest, AnythingElseIsText) {
  for (const char* text : {"", "plain", "$", "${", "${rank", "$rank", "$$", "}{", "${}"}) {
    EXPECT_EQ(Expand(text), text);
  }
  EXPECT_EQ(Expand("$${rank}$"), "$9$");
}

TEST(LinePrefixTest, UnknownMacrosStayAndAreNamedOnce) {
  const LinePrefix prefix("${nmae} ${rank} ${nmae} ${RANK}");
  EXPECT_EQ(prefix.Expand(kValues, ""), "${nmae} 9 ${nmae} ${RANK}");
  EXPECT_THAT(prefix.unknown_macros(), ElementsAre("${nmae}", "${RANK}"));
  EXPECT_THAT(LinePrefix("[${role_name}${local_rank}]:").unknown_macros(), IsEmpty());
}

TEST(LinePrefixTest, KnowsWhetherItNeedsTimeOrPid) {
  EXPECT_TRUE(LinePrefix("${time}").has_time());
  EXPECT_TRUE(LinePrefix("x ${pid}").has_pid());
  EXPECT_FALSE(LinePrefix("${rank}").has_time());
  EXPECT_FALSE(LinePrefix("${rank}").has_pid());
}

TEST(LinePrefixTest, MacroInAValueIsNotExpandedAgain) {
  PrefixValues values = kValues;
  values.role_name = "${rank}";
  EXPECT_EQ(LinePrefix("${role_name}").Expand(values, ""), "${rank}");
}

}  // namespace
}  // namespace muster
