#include "rendezvous/credential_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<std::vector<std::string>> TokensIn(const std::string& text) {
  const std::string path = ::testing::TempDir() + "/tokens";
  std::ofstream(path, std::ios::binary) << text;
  return ReadTokens(path);
}

std::string ProblemOf(const std::string& text) {
  return std::string(TokensIn(text).status().message());
}

TEST(ReadTokens, TakesThoseOf16To4096Characters) {
  const std::string shortest(16, 'a');
  const std::string longest(4096, 'z');
  const auto tokens = TokensIn("# two\n\n" + shortest + "\n  " + longest + " \r\n");
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_THAT(*tokens, ElementsAre(shortest, longest));
  for (const size_t size : {1, 15, 4097}) {
    EXPECT_THAT(ProblemOf(shortest + "\n" + std::string(size, 'a')),
                HasSubstr("/tokens:2 is no token: one has 16 to 4096 printable characters"))
        << size;
  }
}

TEST(ReadTokens, RefusesCharactersThatDoNotTravelAndAFileWithoutAny) {
  for (const char* text :
       {"0123456789 abcdef", "0123456789abcde\xc3\xa9", "0123456789abcdef\t01"}) {
    EXPECT_THAT(ProblemOf(text), HasSubstr(":1 is no token")) << text;
  }
  EXPECT_THAT(ProblemOf("# none yet\n"), HasSubstr("holds no token: put one a line"));
}

}  // namespace
}  // namespace muster
