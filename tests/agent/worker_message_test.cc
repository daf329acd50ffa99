#include "agent/worker_message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

struct Parsed {
  std::vector<std::pair<std::string, std::string>> lines;
  int malformed = 0;
};

Parsed Parse(std::string_view datagram) {
  Parsed parsed;
  parsed.malformed =
      ParseWorkerMessage(datagram, [&parsed](std::string_view key, std::string_view value) {
        parsed.lines.emplace_back(key, value);
      });
  return parsed;
}

TEST(WorkerMessageTest, LinesComeInOrderWithOrWithoutAFinalBreak) {
  EXPECT_THAT(Parse("READY=1\nSTEP=12\n").lines,
              ElementsAre(Pair("READY", "1"), Pair("STEP", "12")));
  EXPECT_THAT(Parse("READY=1").lines, ElementsAre(Pair("READY", "1")));
}

TEST(WorkerMessageTest, ValueMayBeEmptyOrHoldAnything) {
  const Parsed parsed = Parse("STATUS=\nCHECKPOINT=/a=b c\xff\nX_1=\t");
  EXPECT_EQ(parsed.malformed, 0);
  EXPECT_THAT(parsed.lines,
              ElementsAre(Pair("STATUS", ""), Pair("CHECKPOINT", "/a=b c\xff"), Pair("X_1", "\t")));
}

TEST(WorkerMessageTest, EmptyLinesAreAllowed) {
  EXPECT_EQ(Parse("\n\nREADY=1\n\n").malformed, 0);
  EXPECT_THAT(Parse("").lines, IsEmpty());
}

TEST(WorkerMessageTest, MalformedLinesAreCountedAndTheOthersCount) {
  const std::string with_nul("B=\0", 3);
  const Parsed parsed =
      Parse("READY\n=1\nready=1\nA B=1\n" + with_nul + "\nSTEP=3\n" + std::string(65, 'K') + "=1");
  EXPECT_EQ(parsed.malformed, 6);
  EXPECT_THAT(parsed.lines, ElementsAre(Pair("STEP", "3")));
}

}  // namespace
}  // namespace muster
