#include "agent/line_splitter.h"

#include <gtest/gtest.h>

#include <random>

namespace muster {
namespace {

// The result of feeding `pieces` one by one.
std::string Feed(LineSplitter& splitter, const std::vector<std::string>& pieces) {
  std::string out;
  for (const std::string& piece : pieces) splitter.Feed(piece, "P:", &out);
  return out;
}

TEST(LineSplitterTest, EachLineHasOnePrefixHoweverItIsWritten) {
  LineSplitter splitter;
  EXPECT_EQ(Feed(splitter, {"a", "b\nc", "\n\nd\n"}), "P:ab\nP:c\nP:\nP:d\n");
}

TEST(LineSplitterTest, PartOfALineIsHeldBackUntilItsEnd) {
  LineSplitter splitter;
  EXPECT_EQ(Feed(splitter, {"half"}), "");
  EXPECT_EQ(splitter.held(), 4u);
  EXPECT_EQ(Feed(splitter, {" whole\n"}), "P:half whole\n");
  EXPECT_EQ(splitter.held(), 0u);
}

TEST(LineSplitterTest, LineWithoutEndIsCompletedAtTheEndOfTheStream) {
  LineSplitter splitter;
  std::string out = Feed(splitter, {"a\nlast"});
  splitter.Finish("P:", &out);
  splitter.Finish("P:", &out);
  EXPECT_EQ(out, "P:a\nP:last\n");
}

TEST(LineSplitterTest, BinaryBytesPassUnchanged) {
  LineSplitter splitter;
  const std::string binary("20%\0\xff\x1b[0m", 9);
  EXPECT_EQ(Feed(splitter, {binary, "\r\n"}), "P:" + binary + "\r\n");
}

TEST(LineSplitterTest, ProgressBarsAreShownAsTheyAreOverwritten) {
  LineSplitter splitter;
  EXPECT_EQ(Feed(splitter, {"\r10%"}), "");
  EXPECT_EQ(Feed(splitter, {"\r20%", "\r30%\r"}), "P:10%\rP:20%\rP:30%\r");
  EXPECT_EQ(Feed(splitter, {"\r100%\n"}), "P:100%\n") << "an empty one is left out";
  EXPECT_EQ(Feed(splitter, {"a\nb\rc\nd\r\n"}), "P:a\nP:b\rP:c\nP:d\r\n");
}

TEST(LineSplitterTest, ALineBreakInTwoPiecesIsOne) {
  LineSplitter splitter;
  EXPECT_EQ(Feed(splitter, {"a\r", "\nb\r", "c\n"}), "P:a\r\nP:b\rP:c\n");
}

TEST(LineSplitterTest, ALongLineWithCarriageReturnsStaysOne) {
  LineSplitter splitter;
  const std::string most(LineSplitter::kLineBytesHeld + 1, 'x');
  EXPECT_EQ(Feed(splitter, {most, "\ry\rz\n", "next\n"}), "P:" + most + "\ry\rz\nP:next\n");
}

TEST(LineSplitterTest, LongLineIsPassedOnInPiecesWithOnePrefix) {
  LineSplitter splitter;
  const std::string most(LineSplitter::kLineBytesHeld, 'x');
  EXPECT_EQ(Feed(splitter, {most}), "");
  EXPECT_FALSE(splitter.in_long_line());
  EXPECT_EQ(Feed(splitter, {"y"}), "P:" + most + "y");
  EXPECT_TRUE(splitter.in_long_line());
  EXPECT_EQ(splitter.held(), 0u);
  EXPECT_EQ(Feed(splitter, {"more"}), "more");
  EXPECT_EQ(Feed(splitter, {"end\nnext\n"}), "end\nP:next\n");
  EXPECT_FALSE(splitter.in_long_line());
}

TEST(LineSplitterTest, BrokenLongLineGoesOnAsALineOfItsOwn) {
  LineSplitter splitter;
  const std::string piece(100000, 'x');
  std::string out = Feed(splitter, {piece});
  splitter.Break(&out);
  EXPECT_EQ(out, "P:" + piece + "\n");
  EXPECT_EQ(Feed(splitter, {"rest\n"}), "P:rest\n");
  out.clear();
  splitter.Break(&out);
  EXPECT_EQ(out, "");
}

TEST(LineSplitterTest, LongLineIsCompletedAtTheEndOfTheStream) {
  LineSplitter splitter;
  std::string out = Feed(splitter, {std::string(100000, 'x')});
  splitter.Finish("P:", &out);
  EXPECT_EQ(out, "P:" + std::string(100000, 'x') + "\n");
}

TEST(LineSplitterTest, FilterCopiesWholeMatchingLinesWithPrefix) {
  LineSplitter splitter;
  const std::vector<std::string> needles = {"apple", "pear"};
  std::string out;
  std::string matches;
  const LineFilter filter{&needles, &matches};
  for (const char* piece : {"an app", "le\na plum\ntwo pe", "ars\npear without end"}) {
    splitter.Feed(piece, "P:", &out, &filter);
  }
  splitter.Finish("P:", &out, &filter);
  EXPECT_EQ(matches, "P:an apple\nP:two pears\nP:pear without end\n");
  EXPECT_EQ(out, "P:an apple\nP:a plum\nP:two pears\nP:pear without end\n");
}

TEST(LineSplitterTest, FilterDoesNotLookAtThePrefix) {
  LineSplitter splitter;
  const std::vector<std::string> needles = {"P"};
  std::string out;
  std::string matches;
  const LineFilter filter{&needles, &matches};
  splitter.Feed("x\n", "P:", &out, &filter);
  EXPECT_EQ(matches, "");
}

TEST(LineSplitterTest, NoSplittingOfTheInputChangesTheOutput) {
  std::mt19937 random(1);
  std::string text;
  for (int i = 0; i < 2000; ++i) text += random() % 8 == 0 ? '\n' : static_cast<char>(random());
  LineSplitter whole;
  std::string expected = Feed(whole, {text});
  whole.Finish("P:", &expected);
  for (int round = 0; round < 50; ++round) {
    LineSplitter splitter;
    std::string out;
    for (size_t i = 0; i < text.size();) {
      const size_t size = random() % 40;
      splitter.Feed(std::string_view(text).substr(i, size), "P:", &out);
      i += size;
    }
    splitter.Finish("P:", &out);
    ASSERT_EQ(out, expected);
  }
}

TEST(LastLinesTest, TakesLinesFromTheEnd) {
  EXPECT_EQ(LastLines("a\nb\nc\n", 2, false), "b\nc");
  EXPECT_EQ(LastLines("a\nb\nc", 2, false), "b\nc");
  EXPECT_EQ(LastLines("a\nb\nc\n", 9, false), "a\nb\nc");
  EXPECT_EQ(LastLines("a\n\n", 1, false), "");
  EXPECT_EQ(LastLines("a\n\n", 2, false), "a\n");
  EXPECT_EQ(LastLines("\na", 5, false), "\na");
  EXPECT_EQ(LastLines("", 5, false), "");
  EXPECT_EQ(LastLines("a", 0, false), "");
}

TEST(LastLinesTest, FirstLineOfACutTextIsLeftOutUnlessItIsTheOnlyOne) {
  EXPECT_EQ(LastLines("rtial\nb\nc\n", 9, true), "b\nc");
  EXPECT_EQ(LastLines("rtial\nb\nc\n", 2, true), "b\nc");
  EXPECT_EQ(LastLines("rtial", 9, true), "rtial");
}

}  // namespace
}  // namespace muster
