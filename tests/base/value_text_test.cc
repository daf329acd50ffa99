#include "base/value_text.h"

#include <gtest/gtest.h>

#include <string>

namespace muster {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

// The problem of a value that must be refused; it quotes the value and says what to give.
template <typename T>
std::string ProblemOf(const absl::StatusOr<T>& parsed) {
  EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(parsed.status().message());
}

TEST(ValueText, QuotedTextIsOneShortLine) {
  EXPECT_EQ(Quoted("a\nb"), "'a b'");
  EXPECT_EQ(Quoted(std::string(500, 'x')), "'" + std::string(60, 'x') + "...'");
}

TEST(ValueText, SwitchesAreWordsInAnyCase) {
  // As torchrun reads its variables: a number other than 0.
  for (const char* word : {"1", "2", "-1", "true", "YES", "On"})
    EXPECT_TRUE(ParseSwitch(word).value());
  for (const char* word : {"0", "FALSE", "no", "oFF"}) EXPECT_FALSE(ParseSwitch(word).value());
  for (const char* word : {"", "2x", "maybe", " 1", "-"}) EXPECT_FALSE(ParseSwitch(word).ok());
}

TEST(ValueText, SpansHaveAUnitOrAreSeconds) {
  EXPECT_EQ(*ParseSpan("30"), seconds(30));
  EXPECT_EQ(*ParseSpan("0.5"), milliseconds(500));
  EXPECT_EQ(*ParseSpan("1500ms"), milliseconds(1500));
  EXPECT_EQ(*ParseSpan("1h"), hours(1));
  EXPECT_EQ(*ParseSpan("0"), seconds(0));
  for (const char* text : {"", "s", "-1", "1 s", "1w", "1.2.3", "inf", "nan", "1e9", "9999999d"}) {
    EXPECT_FALSE(ParseSpan(text).ok()) << text;
  }
  EXPECT_EQ(ProblemOf(ParsePositiveSpan("0")), "'0' must be positive");
}

TEST(ValueText, NamesAreBetweenCommas) {
  EXPECT_EQ(*ParseNames("a, b"), (std::vector<std::string>{"a", "b"}));
  for (const char* text : {"", "a,", ",a", "a,,b", " "})
    EXPECT_FALSE(ParseNames(text).ok()) << text;
}

TEST(ValueText, LogLevelsAreOursAndPythons) {
  EXPECT_EQ(*ParseLogLevel("WARNING"), LogLevel::kWarning);
  EXPECT_EQ(*ParseLogLevel("critical"), LogLevel::kError);
  EXPECT_EQ(*ParseLogLevel("10"), LogLevel::kDebug);
  EXPECT_EQ(*ParseLogLevel("20"), LogLevel::kInfo);
  EXPECT_FALSE(ParseLogLevel("loud").ok());
}

}  // namespace
}  // namespace muster
