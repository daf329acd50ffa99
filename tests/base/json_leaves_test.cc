#include "base/json_leaves.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

using Values = std::map<std::string, std::string>;

TEST(JsonLeavesTest, ScalarsAreFoundByTheirPath) {
  const JsonLeaves json = ReadJsonLeaves(
      R"( {"a": {"b": 1, "c": ["x", true, null]}, "": "", "d": -1.5e3, "e": [], "f": {}} )");
  EXPECT_TRUE(json.complete);
  EXPECT_EQ(json.values,
            (Values{{"a.b", "1"}, {"a.c.0", "x"}, {"a.c.1", "true"}, {"", ""}, {"d", "-1.5e3"}}));
}

TEST(JsonLeavesTest, EscapesBecomeUtf8) {
  const JsonLeaves json =
      ReadJsonLeaves(R"({"s": "\"\\\/\n\t\r\b\f\u0041\u00e9\u20ac\ud83d\ude00"})");
  EXPECT_TRUE(json.complete);
  EXPECT_EQ(json.values.at("s"), "\"\\/\n\t\r\b\fAé€😀");
}

TEST(JsonLeavesTest, LoneSurrogatesBecomeTheReplacementCharacter) {
  EXPECT_EQ(ReadJsonLeaves(R"({"s": "\ud83dx\udc00"})").values.at("s"),
            "\xEF\xBF\xBDx\xEF\xBF\xBD");
}

struct BadText {
  const char* text;
  Values kept;
};

TEST(JsonLeavesTest, WhatIsNotJsonIsIncomplete) {
  const BadText cases[] = {
      {"", {}},
      {"   ", {}},
      {"{", {}},
      {"{\"a\"", {}},
      {"{\"a\": ", {}},
      {"{\"a\": \"cut", {{"a", "cut"}}},
      {"{\"a\": 1, ", {{"a", "1"}}},
      {"{\"a\": 1} x", {{"a", "1"}}},
      {"{\"a\": nul}", {}},
      {"{a: 1}", {}},
      {"[1, 2", {{"0", "1"}, {"1", "2"}}},
      {"{\"a\": \"\\x\"}", {{"a", "x"}}},
      {"{\"a\": \"\\u12\"}", {}},
      {"{\"a\": \"\\", {}},
  };
  for (const BadText& bad : cases) {
    const JsonLeaves json = ReadJsonLeaves(bad.text);
    EXPECT_FALSE(json.complete) << bad.text;
    EXPECT_EQ(json.values, bad.kept) << bad.text;
  }
}

TEST(JsonLeavesTest, DepthAndNumberOfScalarsAreBounded) {
  EXPECT_TRUE(ReadJsonLeaves(std::string(30, '[') + std::string(30, ']')).complete);
  EXPECT_FALSE(ReadJsonLeaves(std::string(100000, '[')).complete);
  std::string many = "[0";
  for (int i = 0; i < 2000; ++i) many += ",0";
  const JsonLeaves json = ReadJsonLeaves(many + "]");
  EXPECT_FALSE(json.complete);
  EXPECT_EQ(json.values.size(), 1000u);
}

}  // namespace
}  // namespace muster
