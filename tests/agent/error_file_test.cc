#include "agent/error_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/agent/temporary_folder.h"

namespace muster {
namespace {

TEST(ErrorFileTest, ReadsTheFormOfTheRecordDecorator) {
  const std::string text =
      R"x({"message": {"message": "ValueError: bad \"shape\"\nin layer 3", "extraInfo": )x"
      R"x({"py_callstack": "Traceback\n  f()", "timestamp": "1796000000"}}})x";
  const WorkerError expected = {"ValueError: bad \"shape\"\nin layer 3", "Traceback\n  f()",
                                1796000000};
  EXPECT_EQ(ParseErrorFile(text), expected);
}

TEST(ErrorFileTest, ReadsThePlainForm) {
  EXPECT_EQ(ParseErrorFile(R"({"message": "out of memory", "timestamp": 17})"),
            (WorkerError{"out of memory", "", 17}));
}

TEST(ErrorFileTest, TruncatedFileGivesWhatItHolds) {
  const std::string whole =
      R"({"message": {"message": "ValueError: bad", "extraInfo": {"py_callstack": "Trace)";
  EXPECT_EQ(ParseErrorFile(whole), (WorkerError{"ValueError: bad", "Trace", 0}));
  EXPECT_EQ(ParseErrorFile(R"({"message": {"message": "Valu)").message, "Valu");
}

TEST(ErrorFileTest, AnyTruncationGivesSomeMessageAndNoCrash) {
  const std::string whole =
      R"({"message": {"message": "e \u00e9", "extraInfo": {"timestamp": "17"}}})";
  for (size_t size = 1; size < whole.size(); ++size) {
    EXPECT_NE(ParseErrorFile(whole.substr(0, size)).message, "") << size;
  }
}

TEST(ErrorFileTest, TextThatIsNotJsonGivesItsFirstLine) {
  EXPECT_EQ(ParseErrorFile("\n  CUDA error 700\nmore").message, "CUDA error 700");
  EXPECT_EQ(ParseErrorFile(R"({"error": 1})").message, R"({"error": 1})");
}

TEST(ErrorFileTest, NoFileOrAnEmptyOneGivesNoError) {
  TemporaryFolder folder;
  WriteText(folder / "empty", "");
  EXPECT_EQ(ReadErrorFile(""), WorkerError());
  EXPECT_EQ(ReadErrorFile(folder / "missing"), WorkerError());
  EXPECT_EQ(ReadErrorFile(folder / "empty"), WorkerError());
  EXPECT_EQ(ReadErrorFile(folder.path()), WorkerError());
}

TEST(ErrorFileTest, FifoInItsPlaceDoesNotHang) {
  TemporaryFolder folder;
  ASSERT_EQ(mkfifo((folder / "fifo").c_str(), 0600), 0);
  EXPECT_EQ(ReadErrorFile(folder / "fifo"), WorkerError());
}

TEST(ErrorFileTest, ReadsAFile) {
  TemporaryFolder folder;
  WriteText(folder / "error.json", R"({"message": "boom", "timestamp": 3})");
  EXPECT_EQ(ReadErrorFile(folder / "error.json"), (WorkerError{"boom", "", 3}));
}

}  // namespace
}  // namespace muster
