#include "agent/log_pump.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <regex>

#include "base/log.h"
#include "tests/agent/temporary_folder.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

struct Ends {
  UniqueFd read;
  UniqueFd write;
};

Ends Pipe() {
  int ends[2];
  EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

// Workers are descriptors that the test writes to; the console is two pipes that it reads.
class LogPumpTest : public ::testing::Test {
 protected:
  LogPumpTest() : out_(Pipe()), err_(Pipe()) {
    signal(SIGPIPE, SIG_IGN);
    SetLogLevel(LogLevel::kError);
    fcntl(out_.read.get(), F_SETFL, O_NONBLOCK);
    fcntl(err_.read.get(), F_SETFL, O_NONBLOCK);
    context_.slots = 2;
    context_.role = "default";
    context_.node_id = "node-3";
    context_.host_name = "gpu7";
    context_.console_out = out_.write.get();
    context_.console_err = err_.write.get();
    assignment_.generation = 4;
    assignment_.rank_base = 2;
    log_dir_ = folder_ / "logs";
  }
  ~LogPumpTest() override {
    pump_.reset();
    if (directory_) directory_->Remove(true);
    SetLogFd(2);
  }

  // Opens a generation and takes the workers' ends, as the warden would.
  void Open() {
    directory_ = std::make_unique<RunDirectory>(
        RunDirectory::Options{log_dir_, LogPump::LogsAsked(options_), "job", folder_.path()});
    ASSERT_TRUE(directory_->Prepare().ok());
    ASSERT_TRUE(directory_->OpenGeneration(4, 0, context_.slots).ok());
    pump_ = std::make_unique<LogPump>(loop_, options_, context_);
    const absl::Status opened = pump_->OpenGeneration(assignment_, *directory_);
    ASSERT_TRUE(opened.ok()) << opened;
    for (int local_rank = 0; local_rank < context_.slots; ++local_rank) {
      const WorkerStreams streams = pump_->StreamsFor(local_rank);
      worker_out_.emplace_back(streams.out < 0 ? -1 : fcntl(streams.out, F_DUPFD_CLOEXEC, 3));
      worker_err_.emplace_back(streams.err < 0 ? -1 : fcntl(streams.err, F_DUPFD_CLOEXEC, 3));
    }
    pump_->CloseWorkerEnds();
  }

  static void Print(const UniqueFd& stream, std::string_view text) {
    while (!text.empty()) {
      const ssize_t size = write(stream.get(), text.data(), text.size());
      ASSERT_GT(size, 0) << strerror(errno);
      text.remove_prefix(static_cast<size_t>(size));
    }
  }

  void Settle() {
    for (int i = 0; i < 20; ++i) loop_.RunOnce(EventLoop::Now());
  }

  static std::string Take(const UniqueFd& end) {
    std::string text;
    char buffer[65536];
    for (ssize_t size; (size = read(end.get(), buffer, sizeof(buffer))) > 0;)
      text.append(buffer, size);
    return text;
  }
  std::string Console() { return Take(out_.read); }
  std::string ErrorConsole() { return Take(err_.read); }

  TemporaryFolder folder_;
  std::string log_dir_;
  EventLoop loop_;
  Ends out_;
  Ends err_;
  LogOptions options_;
  LogPump::Context context_;
  Assignment assignment_;
  std::unique_ptr<RunDirectory> directory_;
  std::unique_ptr<LogPump> pump_;
  std::vector<UniqueFd> worker_out_;
  std::vector<UniqueFd> worker_err_;
};

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

TEST_F(LogPumpTest, HalfLinesOfTwoWorkersComeOutWhole) {
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

TEST_F(LogPumpTest, LastLinesWithoutEndStandOnLinesOfTheirOwnAndFilesStayRaw) {
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

TEST_F(LogPumpTest, CloseTakesWhatIsReadableAndDoesNotWaitForAHolderOfThePipe) {
  options_.tee.otherwise = Streams::kStdout;
  Open();
  Print(worker_out_[0], "first\nsecond");
  pump_->CloseGeneration();
  EXPECT_EQ(Console(), "[default0]:first\n[default0]:second\n");
  EXPECT_EQ(write(worker_out_[0].get(), "x", 1), -1);
  EXPECT_EQ(errno, EPIPE);
}

TEST_F(LogPumpTest, LongLineIsNotInterruptedByAnotherWorker) {
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

TEST_F(LogPumpTest, LongLineThatDoesNotEndIsBrokenOnceOthersHaveWaited) {
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

TEST_F(LogPumpTest, LongLineIsCompletedBeforeOthersAtTheEndOfTheGeneration) {
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

TEST_F(LogPumpTest, FullConsoleStopsThatStreamOnlyAndNothingIsLost) {
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

TEST_F(LogPumpTest, SlowConsoleIsFlushedAtTheEnd) {
  options_.tee.otherwise = Streams::kStdout;
  Open();
  const std::string line(99, 'l');
  for (int i = 0; i < 2000; ++i) Print(worker_out_[0], line + "\n");
  worker_out_[0].reset();
  pump_->CloseGeneration();
  EXPECT_FALSE(pump_->Flush(EventLoop::Now()));
  const pid_t reader = fork();
  if (reader == 0) {
    size_t size = 0;
    char buffer[4096];
    fcntl(out_.read.get(), F_SETFL, 0);
    while (size < 2000 * 111) size += static_cast<size_t>(read(out_.read.get(), buffer, 4096));
    _exit(0);
  }
  EXPECT_TRUE(pump_->Flush(kNever));
  int status = 0;
  waitpid(reader, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(LogPumpTest, FlushEndsWhenItIsInterrupted) {
  options_.tee.otherwise = Streams::kStdout;
  Open();
  Print(worker_out_[0], std::string(200 * 1024, 'x'));
  pump_->CloseGeneration();
  Ends interrupt = Pipe();
  Print(interrupt.write, "x");
  EXPECT_FALSE(pump_->Flush(kNever, interrupt.read.get()));
}

TEST_F(LogPumpTest, ConsoleThatIsGoneCostsNoFile) {
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

TEST_F(LogPumpTest, StdoutAndStderrToOnePlaceShareOneWriter) {
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

TEST_F(LogPumpTest, UnknownMacroIsWarnedOfOnce) {
  Ends log = Pipe();
  SetLogFd(log.write.get());
  SetLogLevel(LogLevel::kWarning);
  options_.tee.otherwise = Streams::kStdout;
  options_.prefix_template = "${nmae} ${nmae}:";
  Open();
  log.write.reset();
  SetLogFd(2);
  EXPECT_EQ(Take(log.read),
            "muster: the log line prefix has an unknown macro, shown as it is: ${nmae}\n");
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
