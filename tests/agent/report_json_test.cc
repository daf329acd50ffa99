#include "agent/report_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "base/json_leaves.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

FailedWorker Culprit() {
  FailedWorker cause;
  cause.node = "gpu7";
  cause.host = "gpu7.example.org";
  cause.rank = 6;
  cause.local_rank = 2;
  cause.pid = 812;
  cause.status = ExitStatus::Signalled(SIGSEGV, true);
  cause.unix_ms = 1764442416123;
  cause.message = "ValueError: \"bad\"\nshape";
  cause.hint = "core dump: /cores/812";
  cause.stderr_tail = "line 1\nline 2";
  return cause;
}

JobReport Failed() {
  JobReport report;
  report.exit.program = "./train";
  report.exit.job_id = "job";
  report.exit.exit_code = 139;
  report.exit.generation = 3;
  report.node = "gpu8";
  report.cause = Culprit();
  report.reason = "the budget is spent";
  report.workers = {{8, 0, 900, ExitStatus::Signalled(SIGTERM), true, 1500},
                    {9, 1, 901, ExitStatus::Exited(0), false, 1400}};
  report.incidents = {{2, 0, 10, 20, std::nullopt}, {3, 1, 30, 40, Culprit()}};
  return report;
}

TEST(JobReportJsonTest, EverythingIsReadAgain) {
  const JsonLeaves json = ReadJsonLeaves(JobReportJson(Failed()));
  ASSERT_TRUE(json.complete);
  const std::pair<const char*, const char*> expected[] = {
      {"version", "1"},
      {"job", "job"},
      {"node", "gpu8"},
      {"succeeded", "false"},
      {"exit_code", "139"},
      {"reason", "the budget is spent"},
      {"cause.node", "gpu7"},
      {"cause.rank", "6"},
      {"cause.signal_name", "SIGSEGV"},
      {"cause.core_dumped", "true"},
      {"cause.time_ms", "1764442416123"},
      {"cause.message", "ValueError: \"bad\"\nshape"},
      {"cause.stderr", "line 1\nline 2"},
      {"workers.0.signal", "15"},
      {"workers.0.stopped_by_launcher", "true"},
      {"workers.1.exit_code", "0"},
      {"workers.1.uptime_ms", "1400"},
      {"incidents.0.ended_ms", "20"},
      {"incidents.1.restart_count", "1"},
      {"incidents.1.failure.pid", "812"},
  };
  for (const auto& [path, value] : expected) {
    const auto found = json.values.find(path);
    ASSERT_NE(found, json.values.end()) << path;
    EXPECT_EQ(found->second, value) << path;
  }
}

TEST(JobReportJsonTest, SuccessHasNoCause) {
  JobReport report;
  report.exit.job_id = "job";
  const std::string text = JobReportJson(report);
  EXPECT_THAT(text, HasSubstr("\"succeeded\": true"));
  EXPECT_THAT(text, HasSubstr("\"cause\": null"));
  EXPECT_THAT(text, HasSubstr("\"workers\": []"));
  EXPECT_TRUE(ReadJsonLeaves(text).complete);
}

TEST(ErrorFileJsonTest, HasTorchrunsForm) {
  const JsonLeaves json = ReadJsonLeaves(ErrorFileJson(Culprit(), "", 139));
  ASSERT_TRUE(json.complete);
  EXPECT_EQ(json.values.at("message.message"), "ValueError: \"bad\"\nshape");
  EXPECT_EQ(json.values.at("message.errorCode"), "139");
  EXPECT_EQ(json.values.at("message.extraInfo.timestamp"), "1764442416");
  EXPECT_EQ(json.values.at("message.extraInfo.py_callstack"), "line 1\nline 2");
  EXPECT_EQ(ReadJsonLeaves(ErrorFileJson(Culprit(), "Traceback", 139))
                .values.at("message.extraInfo.py_callstack"),
            "Traceback");
}

TEST(TerminationTextTest, BeginsWithTheCauseAndFitsWhateverItHolds) {
  JobReport report = Failed();
  EXPECT_THAT(TerminationText(report, 4096),
              StartsWith("rank 6 (local rank 2, pid 812, node gpu7"));
  EXPECT_THAT(TerminationText(report, 4096), HasSubstr("\nshape\n"));
  EXPECT_THAT(TerminationText(report, 4096), ::testing::EndsWith("line 1\nline 2\n"));
  for (int i = 0; i < 3000; ++i) report.cause->stderr_tail += "世";
  report.cause->stderr_tail += "\nthe end";
  const std::string text = TerminationText(report, 4096);
  EXPECT_LE(text.size(), 4096u);
  EXPECT_THAT(text, ::testing::EndsWith("世\nthe end\n"));
  report.cause->message = report.cause->stderr_tail;
  EXPECT_LE(TerminationText(report, 4096).size(), 4096u);
  report.cause.reset();
  EXPECT_EQ(TerminationText(report, 4096), "the budget is spent\n");
}

}  // namespace
}  // namespace muster
