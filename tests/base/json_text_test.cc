#include "base/json_text.h"

#include <gtest/gtest.h>

#include "base/json_leaves.h"

namespace muster {
namespace {

TEST(JsonStringTest, EveryTextIsAStringThatReadersTake) {
  EXPECT_EQ(JsonString(""), R"("")");
  EXPECT_EQ(JsonString("a\"b\\c\nd\re\tf"), R"("a\"b\\c\nd\re\tf")");
  EXPECT_EQ(JsonString(std::string_view("\0\x1b\x7f", 3)), R"("\u0000\u001b\u007f")");
  EXPECT_EQ(JsonString("grüße 世界 🚀"), "\"grüße 世界 🚀\"");
  EXPECT_EQ(JsonString("a\xff\xe4\xb8"), "\"a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
  EXPECT_EQ(JsonString("\xc0\xaf\xed\xa0\x80").find('\xc0'), std::string::npos);
}

TEST(JsonStringTest, WhatIsWrittenIsReadAgain) {
  const std::string text = "line 1\n\"quoted\" \\ tab\t\x01 ü";
  EXPECT_EQ(ReadJsonLeaves("{\"a\": " + JsonString(text) + "}").values["a"], text);
}

}  // namespace
}  // namespace muster
