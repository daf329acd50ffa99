#include "agent/log_pump.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <regex>

#include "base/log.h"
#include "tests/agent/log_pump_fixture.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

// Where the streams go.
class LogPumpTest : public LogPumpFixture {};

TEST_F(LogPumpTest, WithoutOptionsStreamsAreInherited) {
  log_dir_.clear();
  Open();
  EXPECT_EQ(pump_->StreamsFor(0).out, -1);
  EXPECT_EQ(pump_->StreamsFor(1).err, -1);
  EXPECT_EQ(pump_->StreamsFor(7).out, -1);
  EXPECT_EQ(pump_->Tail(0, 10), "");
}

TEST_F(LogPumpTest, RedirectedStreamIsAFileThatTheWorkerWrites) {
  options_.redirects.by_local_rank = {{0, Streams::kStdout}, {1, Streams::kStderr}};
  Open();
  EXPECT_FALSE(worker_err_[0].valid());
  EXPECT_FALSE(worker_out_[1].valid());
  Print(worker_out_[0], "out\xff-0");
  Print(worker_err_[1], "a\nb\nc\n");
  EXPECT_EQ(FileText(directory_->LogFile(0, false)), "out\xff-0");
  EXPECT_EQ(pump_->Tail(1, 2), "b\nc");
  Settle();
  EXPECT_EQ(Console() + ErrorConsole(), "");
}

TEST_F(LogPumpTest, TeedStreamGoesRawToTheFileAndPrefixedToTheConsole) {
  options_.tee.otherwise = Streams::kBoth;
  Open();
  Print(worker_out_[0], "out-0\n");
  Print(worker_err_[1], "err-1\r\n");
  Settle();
  EXPECT_EQ(Console(), "[default0]:out-0\n");
  EXPECT_EQ(ErrorConsole(), "[default1]:err-1\r\n");
  EXPECT_EQ(FileText(directory_->LogFile(0, false)), "out-0\n");
  EXPECT_EQ(FileText(directory_->LogFile(1, true)), "err-1\r\n");
}

TEST_F(LogPumpTest, RanksThatAreFilteredAreSilentOnTheConsole) {
  options_.local_ranks_filter = {1};
  options_.tee.otherwise = Streams::kStdout;
  Open();
  for (int rank = 0; rank < 2; ++rank) {
    Print(worker_out_[rank], "out\n");
    if (worker_err_[rank].valid()) Print(worker_err_[rank], "err\n");
  }
  Settle();
  EXPECT_EQ(Console(), "[default1]:out\n");
  EXPECT_EQ(ErrorConsole(), "");
  EXPECT_TRUE(worker_err_[0].valid()) << "neither redirected nor shown: to /dev/null";
  EXPECT_FALSE(worker_err_[1].valid()) << "shown: inherited";
  EXPECT_EQ(FileText(directory_->LogFile(0, false)), "out\n");
}

TEST_F(LogPumpTest, MatchingLinesOfAllRanksAreCopied) {
  options_.tee.otherwise = Streams::kBoth;
  options_.duplicate_stdout_filters = {"apple", "pear"};
  options_.duplicate_stderr_filters = {"warn"};
  options_.local_ranks_filter = {0};
  Open();
  for (int rank = 0; rank < 2; ++rank) {
    Print(worker_out_[rank], "an apple\na plum\ntwo pears\n");
    Print(worker_err_[rank], "warning\nfine\n");
  }
  pump_->CloseGeneration();
  EXPECT_EQ(
      FileText(directory_->FilteredLogFile(false)),
      "[default0]:an apple\n[default0]:two pears\n[default1]:an apple\n[default1]:two pears\n");
  EXPECT_EQ(FileText(directory_->FilteredLogFile(true)),
            "[default0]:warning\n[default1]:warning\n");
  EXPECT_THAT(Console(), ::testing::Not(HasSubstr("default1")));
}

TEST_F(LogPumpTest, PrefixKnowsEveryMacroAndWaitsForThePid) {
  options_.tee.otherwise = Streams::kStdout;
  options_.prefix_template = "${node}/${hostname}/${rank}/${generation}/${pid}: ";
  Open();
  Print(worker_out_[1], "x\n");
  Settle();
  EXPECT_EQ(Console(), "");
  pump_->SetPid(1, 812);
  Settle();
  EXPECT_EQ(Console(), "node-3/gpu7/3/4/812: x\n");
}

TEST_F(LogPumpTest, PrefixWithTimeIsAMoment) {
  options_.tee.otherwise = Streams::kStdout;
  options_.prefix_template = "${time} ";
  Open();
  Print(worker_out_[0], "x\n");
  Settle();
  const std::string text = Console();
  EXPECT_TRUE(std::regex_match(text, std::regex(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z x\n)")))
      << text;
}

TEST_F(LogPumpTest, UnknownMacroStaysAsItIs) {
  options_.tee.otherwise = Streams::kStdout;
  options_.prefix_template = "${nmae} ${nmae}:";
  Open();
  Print(worker_out_[0], "x\n");
  Settle();
  EXPECT_EQ(Console(), "${nmae} ${nmae}:x\n");
}

TEST_F(LogPumpTest, TailHasTheLastLinesOfATeedStderr) {
  options_.tee.otherwise = Streams::kBoth;
  Open();
  std::string text;
  for (int i = 0; i < 10000; ++i) text += "line " + std::to_string(i) + "\n";
  for (size_t at = 0; at < text.size(); at += 10000) {
    Print(worker_err_[0], text.substr(at, 10000));
    Settle();
    ErrorConsole();
  }
  Print(worker_err_[0], "BOOM");
  EXPECT_EQ(pump_->Tail(0, 2), "line 9999\nBOOM");
  worker_err_[0].reset();
  pump_->CloseGeneration();
  EXPECT_EQ(pump_->Tail(0, 1), "BOOM");
  const std::string all = pump_->Tail(0, 100000);
  EXPECT_LE(all.size(), 32u * 1024);
  EXPECT_EQ(all.substr(0, 5), "line ");
}

TEST_F(LogPumpTest, LogDirectoryDevNullShowsOnTheConsoleAndWritesNoFile) {
  log_dir_ = "/dev/null";
  options_.tee.otherwise = Streams::kBoth;
  options_.redirects.otherwise = Streams::kBoth;
  options_.tee.by_local_rank = {{1, Streams::kNone}};
  Open();
  Print(worker_out_[0], "shown\n");
  Print(worker_out_[1], "gone\n");
  Print(worker_err_[0], "BOOM\n");
  Settle();
  EXPECT_EQ(Console(), "[default0]:shown\n");
  EXPECT_EQ(pump_->Tail(0, 5), "BOOM");
}

TEST_F(LogPumpTest, NextGenerationWritesToItsOwnFiles) {
  options_.tee.otherwise = Streams::kStdout;
  Open();
  Print(worker_out_[0], "old\n");
  const std::string old_file = directory_->LogFile(0, false);
  pump_->CloseGeneration();
  ASSERT_TRUE(directory_->OpenGeneration(5, 0, 2).ok());
  ASSERT_TRUE(pump_->OpenGeneration(assignment_, *directory_).ok());
  ASSERT_GT(write(pump_->StreamsFor(0).out, "new\n", 4), 0);
  pump_->CloseGeneration();
  EXPECT_EQ(FileText(old_file), "old\n");
  EXPECT_EQ(FileText(directory_->LogFile(0, false)), "new\n");
  EXPECT_EQ(Console(), "[default0]:old\n[default0]:new\n");
}

TEST_F(LogPumpTest, FullDiskCostsTheFileOnlyAndIsWarnedOfOnce) {
  Ends log = Pipe();
  SetLogFd(log.write.get());
  SetLogLevel(LogLevel::kWarning);
  options_.tee.by_local_rank = {{0, Streams::kStdout}};
  directory_ =
      std::make_unique<RunDirectory>(RunDirectory::Options{log_dir_, true, "job", folder_.path()});
  ASSERT_TRUE(directory_->Prepare().ok());
  ASSERT_TRUE(directory_->OpenGeneration(4, 0, 2).ok());
  const std::string path = directory_->LogFile(0, false);
  ASSERT_EQ(symlink("/dev/full", path.c_str()), 0);
  pump_ = std::make_unique<LogPump>(loop_, options_, context_);
  ASSERT_TRUE(pump_->OpenGeneration(assignment_, *directory_).ok());
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(write(pump_->StreamsFor(0).out, "line\n", 5), 5);
    Settle();
  }
  pump_->CloseGeneration();
  log.write.reset();
  SetLogFd(2);
  EXPECT_EQ(Console(), "[default0]:line\n[default0]:line\n[default0]:line\n");
  EXPECT_EQ(Take(log.read), "muster: log file " + path +
                                ": No space left on device; output is lost there, and still shown "
                                "on the console\nmuster: 15 bytes are missing in " +
                                path + "\n");
}

TEST_F(LogPumpTest, FileThatCannotBeOpenedIsAnErrorAndNothingStaysOpen) {
  options_.redirects.otherwise = Streams::kBoth;
  directory_ =
      std::make_unique<RunDirectory>(RunDirectory::Options{log_dir_, true, "job", folder_.path()});
  ASSERT_TRUE(directory_->Prepare().ok());
  ASSERT_TRUE(directory_->OpenGeneration(4, 0, 2).ok());
  std::filesystem::create_directory(directory_->LogFile(1, true));
  pump_ = std::make_unique<LogPump>(loop_, options_, context_);
  const absl::Status status = pump_->OpenGeneration(assignment_, *directory_);
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr(directory_->LogFile(1, true)));
  EXPECT_EQ(pump_->StreamsFor(0).out, -1);
}

}  // namespace
}  // namespace muster
