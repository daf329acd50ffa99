#include "base/env.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(Env, TakesWhatExecveTakes) {
  const char* entries[] = {"A=1", "B=", "C=x=y", "A=2", "odd", "=x", nullptr};
  EnvMap env = EnvMapFrom(entries);
  EXPECT_EQ(env, (EnvMap{{"A", "1"}, {"B", ""}, {"C", "x=y"}}));
  EXPECT_EQ(*FindVariable(env, "B"), "");
  EXPECT_EQ(FindVariable(env, "D"), nullptr);
  EXPECT_TRUE(EnvMapFrom(nullptr).empty());
}

}  // namespace
}  // namespace muster
