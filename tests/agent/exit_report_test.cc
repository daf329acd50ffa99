#include "agent/exit_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "agent/report_text.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using namespace std::chrono_literals;

FailedWorker Failed(int rank, ExitStatus status) {
  FailedWorker failure;
  failure.node = "gpu7";
  failure.host = "gpu7.example.org";
  failure.rank = rank;
  failure.local_rank = rank % 4;
  failure.pid = 800 + rank;
  failure.status = status;
  return failure;
}

ExitReport Report() {
  ExitReport report;
  report.program = "./trainer";
  report.job_id = "job";
  report.generation = 3;
  report.restarts_used = 2;
  report.restarts_max = 2;
  report.exit_code = 3;
  return report;
}

TEST(ExitReportTest, NamesTheRootCauseFirstAndStoppedPeersApart) {
  ExitReport report = Report();
  FailedWorker cause = Failed(6, ExitStatus::Exited(3));
  cause.time = "2026-11-29T18:53:36.123Z";
  cause.message = "ValueError: bad shape";
  cause.stderr_tail = "loading\nBOOM";
  cause.log_path = "/logs/2/stderr.log";
  cause.error_file = "/logs/2/error.json";
  report.failures = {cause, Failed(7, ExitStatus::Signalled(SIGSEGV, true))};
  report.stopped = {{4, 0, 804, ExitStatus::Signalled(SIGTERM), 1200ms, false},
                    {5, 1, 805, ExitStatus::Signalled(SIGKILL), 30s, true}};
  report.log_root = "/logs";
  EXPECT_EQ(ExitReportText(report), std::string(100, '=') + R"(
./trainer FAILED (job job, generation 3, 2 of 2 restarts used)

Root cause: rank 6 (local rank 2, pid 806): exit code 3
  node        gpu7 (host gpu7.example.org)
  time        2026-11-29T18:53:36.123Z
  message     ValueError: bad shape
  last lines of its stderr:
    | loading
    | BOOM
  log         /logs/2/stderr.log
  error file  /logs/2/error.json

Failed later on this node:
  rank 7 (local rank 3, pid 807, node gpu7) failed: signal 11 (SIGSEGV), core dumped

Stopped by the launcher:
  rank 4 (local rank 0, pid 804): SIGTERM, ended after 1.2 s with signal 15 (SIGTERM)
  rank 5 (local rank 1, pid 805): SIGTERM, then SIGKILL, ended after 30.0 s with signal 9 (SIGKILL)

  logs        /logs
  exit code   3
)" + std::string(100, '=') + "\n");
}

TEST(ExitReportTest, CauseThatAnotherNodeHasToldComesInFull) {
  ExitReport report = Report();
  FailedWorker cause = Failed(9, ExitStatus::Signalled(SIGKILL));
  cause.message = "first\nsecond";
  cause.hint = "out of memory: a\nkernel: b";
  cause.stderr_tail = "last words";
  report.cause = cause;
  report.failures = {Failed(2, ExitStatus::Exited(1))};
  const std::string text = ExitReportText(report);
  EXPECT_THAT(text, HasSubstr(R"(Root cause: rank 9 (local rank 1, pid 809): signal 9 (SIGKILL)
  node        gpu7 (host gpu7.example.org)
  message     first
              second
  hint        out of memory: a
              kernel: b
  last lines of its stderr:
    | last words

Failed on this node:
  rank 2 )"));
}

TEST(ExitReportTest, CauseOnAnotherNodeComesBeforeTheFailuresOfThisOne) {
  ExitReport report = Report();
  report.cause_elsewhere = "rank 9 failed: signal 9 (SIGKILL)";
  report.failed_node = "gpu3";
  report.failed_rank = 9;
  report.failures = {Failed(1, ExitStatus::Exited(1))};
  const std::string text = ExitReportText(report);
  const size_t cause =
      text.find("Root cause: rank 9 on node gpu3: rank 9 failed: signal 9 (SIGKILL)\n");
  ASSERT_NE(cause, std::string::npos) << text;
  EXPECT_GT(text.find("Failed on this node:\n  rank 1 "), cause) << text;
}

TEST(ExitReportTest, ReportWithoutAnythingKnownIsStillAReport) {
  EXPECT_THAT(ExitReportText(Report()), HasSubstr("Root cause: not known on this node\n"));
}

TEST(ExitReportTest, LinesHaveAtMost100Columns) {
  ExitReport report = Report();
  report.program = "./" + std::string(300, 'p');
  FailedWorker cause = Failed(0, ExitStatus::Signalled(SIGKILL));
  cause.message = std::string(250, 'm') + " words " + std::string(90, 'n') + "\n" +
                  std::string(120, '\xe9') + "\nlast";
  for (int i = 0; i < 100; ++i)
    cause.stderr_tail += std::to_string(i) + std::string(200, 's') + "\n";
  cause.stderr_tail += "\xe2\x82\xac" + std::string(300, 'z');
  report.failures = {cause};
  for (int i = 1; i < 40; ++i) {
    report.failures.push_back(Failed(i, ExitStatus::Exited(1)));
    report.failures.back().message = std::string(400, 'q');
    report.stopped.push_back({i, i, 1000000 + i, ExitStatus::Signalled(SIGKILL, true), 30s, true});
  }
  for (const std::string& line : CleanLines(ExitReportText(report))) {
    EXPECT_EQ(CutToColumns(line, 100), line);
  }
  const std::string text = ExitReportText(report);
  EXPECT_THAT(text, HasSubstr("    | €zzz"));
  EXPECT_THAT(text, Not(HasSubstr("    | 70sss")));
  EXPECT_THAT(text, HasSubstr("    | 71sss"));
  EXPECT_THAT(text, HasSubstr("  and 23 more\n"));
}

TEST(ExitReportTest, ControlBytesOfWorkersNeverReachTheTerminal) {
  ExitReport report = Report();
  FailedWorker cause = Failed(0, ExitStatus::Exited(1));
  cause.message = "\x1b[2Jgone\x07\nsecond";
  cause.stderr_tail = "10%\r50%\r100%\r\n\x1b]0;title\x07 \xc2\x9b x";
  cause.log_path = "/a\nb";
  report.failures = {cause};
  const std::string text = ExitReportText(report);
  EXPECT_EQ(text.find_first_of("\x1b\x07\r"), std::string::npos);
  EXPECT_THAT(text, Not(HasSubstr("\xc2\x9b")));
  EXPECT_THAT(text, HasSubstr("    | 100%\n"));
  EXPECT_THAT(text, HasSubstr("  log         /a b\n"));
}

TEST(ExitReportTest, LongMessageIsEndedWithACount) {
  ExitReport report = Report();
  FailedWorker cause = Failed(0, ExitStatus::Exited(1));
  for (int i = 0; i < 20; ++i) cause.message += "line " + std::to_string(i) + "\n";
  report.failures = {cause};
  EXPECT_THAT(ExitReportText(report), HasSubstr("line 11\n              (8 more lines)\n"));
}

TEST(FailureLineTest, IsOneLine) {
  FailedWorker failure = Failed(2, ExitStatus::Signalled(SIGKILL));
  EXPECT_EQ(FailureLine(failure),
            "rank 2 (local rank 2, pid 802, node gpu7) failed: signal 9 (SIGKILL)");
  failure.message = "ValueError: x\nmore";
  EXPECT_EQ(FailureLine(failure),
            "rank 2 (local rank 2, pid 802, node gpu7) failed: signal 9 (SIGKILL): ValueError: x");
  failure.message = std::string(1000, 'x');
  EXPECT_EQ(CutToColumns(FailureLine(failure), 240), FailureLine(failure));
}

TEST(FailureLineTest, WorkerThatNeverStartedSaysSo) {
  FailedWorker failure = Failed(2, ExitStatus::Exited(127));
  failure.pid = 0;
  failure.message = "./trainer: No such file or directory";
  EXPECT_EQ(FailureLine(failure),
            "rank 2 (local rank 2, node gpu7) never started: exit code 127: ./trainer: No such "
            "file or directory");
}

TEST(FailureHintTest, CommonEndsAreExplained) {
  EXPECT_THAT(FailureHint(ExitStatus::Signalled(SIGKILL)), HasSubstr("out-of-memory"));
  EXPECT_THAT(FailureHint(ExitStatus::Signalled(SIGBUS)), HasSubstr("/dev/shm"));
  EXPECT_THAT(FailureHint(ExitStatus::Signalled(SIGSEGV)), HasSubstr("crash"));
  EXPECT_THAT(FailureHint(ExitStatus::Exited(127)), HasSubstr("does not find"));
  EXPECT_THAT(FailureHint(ExitStatus::Exited(137)), HasSubstr("SIGKILL"));
  EXPECT_EQ(FailureHint(ExitStatus::Exited(1)), "");
  EXPECT_EQ(FailureHint(ExitStatus::Signalled(SIGUSR1)), "");
}

TEST(ReportTextTest, WrapsAtBlanksAndCutsCharactersWhole) {
  EXPECT_THAT(WrapToColumns("aa bb cc", 5), ::testing::ElementsAre("aa bb", "cc"));
  EXPECT_THAT(WrapToColumns("aaaaaaa b", 3), ::testing::ElementsAre("aaa", "aaa", "a b"));
  EXPECT_THAT(WrapToColumns("", 3), ::testing::ElementsAre(""));
  EXPECT_EQ(CutToColumns("äöüß", 4), "äöüß");
  EXPECT_EQ(CutToColumns("äöüßx", 4), "äöü…");
  EXPECT_EQ(CleanLine("a\xff\xe2\x82"
                      "b"),
            "a???b");
}

}  // namespace
}  // namespace muster
