#include "agent/log_file.h"

#include <gtest/gtest.h>

#include "tests/agent/temporary_folder.h"

namespace muster {
namespace {

class LogFileTest : public ::testing::Test {
 protected:
  void Write(LogFile& file, const std::string& text) {
    size_t written = 0;
    EXPECT_EQ(file.Write(text, &written), 0);
    EXPECT_EQ(written, text.size());
  }

  TemporaryFolder folder_;
  std::string path_ = folder_ / "stdout.log";
};

TEST_F(LogFileTest, WithoutALimitOneFileTakesAll) {
  LogFile file(path_, {});
  Write(file, std::string(100000, 'x'));
  Write(file, "\nend");
  EXPECT_EQ(FileText(path_).size(), 100004u);
  EXPECT_EQ(NamesIn(folder_.path()).size(), 1u);
}

TEST_F(LogFileTest, FilesEndWithALineAndTheOldestGoes) {
  LogFile file(path_, {10, 3});
  for (const char* line : {"one 1\n", "two 2\n", "three 3\n", "4\n", "five 5\n"}) Write(file, line);
  EXPECT_EQ(FileText(path_), "five 5\n");
  EXPECT_EQ(FileText(path_ + ".1"), "three 3\n4\n");
  EXPECT_EQ(FileText(path_ + ".2"), "two 2\n");
  EXPECT_EQ(NamesIn(folder_.path()).size(), 3u) << "the first line is gone";
}

TEST_F(LogFileTest, ManyLinesInOneWriteAreDistributed) {
  LogFile file(path_, {10, 9});
  Write(file, "aaaa\nbbbb\ncccc\ndddd\ne");
  EXPECT_EQ(FileText(path_ + ".2"), "aaaa\nbbbb\n");
  EXPECT_EQ(FileText(path_ + ".1"), "cccc\ndddd\n");
  EXPECT_EQ(FileText(path_), "e");
}

TEST_F(LogFileTest, ALineStaysInOneFileAcrossWrites) {
  LogFile file(path_, {10, 9});
  Write(file, "begin ");
  Write(file, "of a long line\nnext\n");
  EXPECT_EQ(FileText(path_ + ".1"), "begin of a long line\n");
  EXPECT_EQ(FileText(path_), "next\n");
}

TEST_F(LogFileTest, ALineThatDoesNotEndIsCut) {
  LogFile file(path_, {1000, 2});
  const std::string text(200000, 'x');
  Write(file, text);
  EXPECT_EQ(FileText(path_ + ".1").size(), 1000u + 64 * 1024);
  EXPECT_LE(FileText(path_).size(), 1000u + 64 * 1024);
}

TEST_F(LogFileTest, OneFileIsJustEmptied) {
  LogFile file(path_, {4, 1});
  Write(file, "abc\ndef\n");
  EXPECT_EQ(FileText(path_), "def\n");
  EXPECT_EQ(NamesIn(folder_.path()).size(), 1u);
}

TEST_F(LogFileTest, WhatCannotBeMadeIsNotValid) {
  EXPECT_FALSE(LogFile("/no/such/folder/x", {}).valid());
}

}  // namespace
}  // namespace muster
