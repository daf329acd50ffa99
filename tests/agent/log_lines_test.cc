#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <regex>

#include "agent/log_pump.h"
#include "tests/agent/log_pump_fixture.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

// What lines look like on the console, also when it is slow.
class LogLinesTest : public LogPumpFixture {};

TEST_F(LogLinesTest, HalfLinesOfTwoWorkersComeOutWhole) {
  options_.tee.otherwise = Streams::kStdout;
  Open();
  for (int i = 0; i < 100; ++i) {
    for (const UniqueFd& worker : worker_out_) Print(worker, "<half");
    Settle();
    for (const UniqueFd& worker : worker_out_) Print(worker, " whole>\n");
    Settle();
  }
  const std::string text = Console();
  EXPECT_TRUE(std::regex_match(text, std::regex(R"((\[default[01]\]:<half whole>\n){200})")))
      << text;
}

TEST_F(LogLinesTest, LastLinesWithoutEndStandOnLinesOfTheirOwnAndFilesStayRaw) {
  options_.tee.otherwise = Streams::kStdout;
  Open();
  for (UniqueFd& worker : worker_out_) {
    Print(worker, "tail");
    worker.reset();
  }
  Settle();
  const std::string text = Console();
  EXPECT_THAT(text, HasSubstr("[default0]:tail\n"));
  EXPECT_THAT(text, HasSubstr("[default1]:tail\n"));
  EXPECT_EQ(FileText(directory_->LogFile(0, false)), "tail");
}

TEST_F(LogLinesTest, CloseTakesWhatIsReadableAndDoesNotWaitForAHolderOfThePipe) {
  options_.tee.otherwise = Streams::kStdout;
  Open();
  Print(worker_out_[0], "first\nsecond");
  pump_->CloseGeneration();
  EXPECT_EQ(Console(), "[default0]:first\n[default0]:second\n");
  EXPECT_EQ(write(worker_out_[0].get(), "x", 1), -1);
  EXPECT_EQ(errno, EPIPE);
}

TEST_F(LogLinesTest, LongLineIsNotInterruptedByAnotherWorker) {
  options_.tee.otherwise = Streams::kStdout;
  context_.long_line_hold = std::chrono::hours(1);
  Open();
  const std::string piece(60 * 1024, 'x');
  Print(worker_out_[0], piece);
  Settle();
  Print(worker_out_[0], piece);
  Settle();
  Print(worker_out_[1], "other\n");
  Settle();
  std::string text = Console();
  Settle();
  text += Console();
  EXPECT_EQ(text, "[default0]:" + piece + piece);
  Print(worker_out_[0], "end\n");
  Settle();
  EXPECT_EQ(Console(), "end\n[default1]:other\n");
  EXPECT_EQ(FileText(directory_->LogFile(0, false)), piece + piece + "end\n");
}

TEST_F(LogLinesTest, LongLineThatDoesNotEndIsBrokenOnceOthersHaveWaited) {
  options_.tee.otherwise = Streams::kStdout;
  context_.long_line_hold = 1ms;
  Open();
  const std::string piece(60 * 1024, 'x');
  std::string text;
  for (int i = 0; i < 2; ++i) {
    Print(worker_out_[0], piece);
    Settle();
    text += Console();
    Settle();
  }
  Print(worker_out_[1], "other\n");
  const Time deadline = EventLoop::Now() + 10s;
  while (text.find("other") == std::string::npos && EventLoop::Now() < deadline) {
    loop_.RunOnce(deadline);
    text += Console();
  }
  EXPECT_EQ(text, "[default0]:" + piece + piece + "\n[default1]:other\n");
  Print(worker_out_[0], "rest\n");
  Settle();
  EXPECT_EQ(Console(), "[default0]:rest\n");
  EXPECT_EQ(FileText(directory_->LogFile(0, false)), piece + piece + "rest\n");
}

TEST_F(LogLinesTest, LongLineIsCompletedBeforeOthersAtTheEndOfTheGeneration) {
  options_.tee.otherwise = Streams::kStdout;
  context_.long_line_hold = std::chrono::hours(1);
  fcntl(out_.write.get(), F_SETPIPE_SZ, 1 << 20);
  Open();
  const std::string piece(100 * 1024, 'x');
  Print(worker_out_[1], piece);
  Settle();
  Print(worker_out_[0], "other\n");
  Print(worker_out_[1], "end\n");
  pump_->CloseGeneration();
  EXPECT_EQ(Console(), "[default1]:" + piece + "end\n[default0]:other\n");
}

TEST_F(LogLinesTest, FullConsoleStopsThatStreamOnlyAndNothingIsLost) {
  options_.tee.otherwise = Streams::kBoth;
  Open();
  const std::string line(79, 'l');
  std::string written;
  const int writer = worker_out_[0].get();
  fcntl(writer, F_SETFL, O_NONBLOCK);
  // Nobody reads the console: in the end the worker's pipe is full.
  for (;;) {
    const std::string text = line + "\n";
    const ssize_t size = write(writer, text.data(), text.size());
    if (size < 0) break;
    written += text.substr(0, static_cast<size_t>(size));
    if (written.size() % 8000 == 0) Settle();
  }
  Settle();
  Print(worker_err_[1], "still alive\n");
  Settle();
  EXPECT_EQ(ErrorConsole(), "[default1]:still alive\n");

  worker_out_[0].reset();
  std::string shown;
  const Time deadline = EventLoop::Now() + 20s;
  for (std::string text; EventLoop::Now() < deadline;) {
    Settle();
    text = Console();
    if (text.empty()) break;
    shown += text;
  }
  std::string expected;
  for (size_t at = 0; at < written.size(); at += 80) {
    expected += "[default0]:" + written.substr(at, 80);
  }
  if (expected.back() != '\n') expected += '\n';
  EXPECT_EQ(shown.size(), expected.size());
  EXPECT_TRUE(shown == expected);
  EXPECT_TRUE(FileText(directory_->LogFile(0, false)) == written);
}

// Fits into a worker's pipe, and not into the console's with a prefix before each line.
constexpr int kShortLines = 120'000;
constexpr size_t kShownBytes = kShortLines * (std::string_view("[default0]:l\n").size());

std::string MoreThanTheConsoleTakes() {
  std::string text;
  for (int i = 0; i < kShortLines; ++i) text += "l\n";
  return text;
}

TEST_F(LogLinesTest, SlowConsoleIsFlushedAtTheEnd) {
  options_.tee.otherwise = Streams::kStdout;
  Open();
  Print(worker_out_[0], MoreThanTheConsoleTakes());
  worker_out_[0].reset();
  pump_->CloseGeneration();
  EXPECT_FALSE(pump_->Flush(EventLoop::Now()));
  const pid_t reader = fork();
  if (reader == 0) {
    size_t size = 0;
    char buffer[4096];
    fcntl(out_.read.get(), F_SETFL, 0);
    while (size < kShownBytes) size += static_cast<size_t>(read(out_.read.get(), buffer, 4096));
    _exit(0);
  }
  EXPECT_TRUE(pump_->Flush(kNever));
  int status = 0;
  waitpid(reader, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(LogLinesTest, FlushEndsWhenItIsInterrupted) {
  options_.tee.otherwise = Streams::kStdout;
  Open();
  Print(worker_out_[0], MoreThanTheConsoleTakes());
  pump_->CloseGeneration();
  Ends interrupt = Pipe();
  Print(interrupt.write, "x");
  EXPECT_FALSE(pump_->Flush(kNever, interrupt.read.get()));
}

TEST_F(LogLinesTest, ConsoleThatIsGoneCostsNoFile) {
  options_.tee.otherwise = Streams::kStdout;
  Open();
  out_.read.reset();
  Print(worker_out_[0], "one\n");
  Settle();
  Print(worker_out_[0], "two\n");
  Settle();
  EXPECT_EQ(FileText(directory_->LogFile(0, false)), "one\ntwo\n");
  EXPECT_FALSE(pump_->Flush(kNever));
}

TEST_F(LogLinesTest, StdoutAndStderrToOnePlaceShareOneWriter) {
  options_.tee.otherwise = Streams::kBoth;
  context_.console_err = out_.write.get();
  context_.long_line_hold = std::chrono::hours(1);
  fcntl(out_.write.get(), F_SETPIPE_SZ, 1 << 20);
  Open();
  const std::string piece(100 * 1024, 'x');
  Print(worker_out_[0], piece);
  Settle();
  Print(worker_err_[0], "error\n");
  Settle();
  Print(worker_out_[0], "\n");
  Settle();
  EXPECT_EQ(Console(), "[default0]:" + piece + "\n[default0]:error\n");
}

}  // namespace
}  // namespace muster
