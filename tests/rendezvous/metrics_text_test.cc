#include "rendezvous/metrics_text.h"

#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "tests/rendezvous/test_job.h"

namespace muster {
namespace {

using namespace std::chrono_literals;

// Reads the text format as strictly as `promtool check metrics` does, and what it finds fault with
// besides: help before type before samples, no family twice, suffixes that fit the type, cumulative
// buckets that end with +Inf.
class StrictReader {
 public:
  explicit StrictReader(const std::string& text) {
    EXPECT_TRUE(!text.empty() && text.back() == '\n');
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) Read(line);
  }

  double Value(const std::string& sample) const {
    const auto found = samples_.find(sample);
    if (found == samples_.end()) ADD_FAILURE() << "there is no " << sample;
    return found == samples_.end() ? -1 : found->second;
  }
  const std::map<std::string, std::string>& types() const { return types_; }

 private:
  void Read(const std::string& line) {
    static const std::regex kHelp("# HELP ([a-z_]+) (.*\\.)");
    static const std::regex kType("# TYPE ([a-z_]+) (counter|gauge|histogram)");
    static const std::regex kSample(
        "([a-z_]+)(\\{[a-z]+=\"(?:[^\"\\\\]|\\\\[\\\\n\"])*\"(?:,[a-z]+=\"(?:[^\"\\\\]|\\\\["
        "\\\\n\"])*"
        "\")*\\})? ([0-9.e+-]+)");
    std::smatch match;
    if (std::regex_match(line, match, kHelp)) {
      EXPECT_TRUE(helped_.insert(match[1]).second) << "twice: " << line;
      family_ = match[1];
    } else if (std::regex_match(line, match, kType)) {
      EXPECT_EQ(match[1], family_) << line;
      types_[family_] = match[2];
      EXPECT_EQ(match[2] == "counter", family_.ends_with("_total")) << line;
    } else if (std::regex_match(line, match, kSample)) {
      TakeSample(match[1], match[2], std::stod(match[3]));
    } else {
      ADD_FAILURE() << "not a line of the format: " << line;
    }
  }

  void TakeSample(const std::string& name, const std::string& labels, double value) {
    const bool is_histogram = types_[family_] == "histogram";
    const std::string suffix = name.substr(std::min(family_.size(), name.size()));
    EXPECT_EQ(name.substr(0, family_.size()), family_);
    EXPECT_TRUE(is_histogram ? suffix == "_bucket" || suffix == "_sum" || suffix == "_count"
                             : suffix.empty())
        << name;
    EXPECT_TRUE(samples_.emplace(name + labels, value).second) << "twice: " << name << labels;
    if (suffix == "_bucket") {
      EXPECT_GE(value, last_bucket_);
      last_bucket_ = labels.find("le=\"+Inf\"") != labels.npos ? 0 : value;
    }
  }

  std::string family_;
  std::set<std::string> helped_;
  std::map<std::string, std::string> types_;
  std::map<std::string, double> samples_;
  double last_bucket_ = 0;
};

std::string Text(const MasterReport& report) { return MetricsText(report, 1'764'442'416'123); }

MasterReport ReportOf(const TestJob& job, const std::string& name) {
  MasterReport report;
  report.jobs.push_back(
      {StatusOf(job.machine(), job.journal().recorder(), job.now(), StatusDetail::kSummary),
       job.journal().counters()});
  report.jobs.back().status.job_id = name;
  return report;
}

TEST(MetricsText, TellsWhatHasHappenedInTheFormatOfPrometheus) {
  TestJob job(NodesFrom(2, 2, 3));
  job.Join("a");
  job.Advance(2s);
  job.Join("b");
  job.Advance(60s);
  job.Failed("b", 3, 60s);
  job.Stopped("b");
  job.Advance(300ms);
  job.Stopped("a");
  job.Say("a", WorkersStarted{2});
  job.Say("b", WorkersStarted{2});
  const StrictReader metrics(Text(ReportOf(job, "digits")));
  EXPECT_EQ(metrics.Value("muster_jobs{phase=\"running\"}"), 1);
  EXPECT_EQ(metrics.Value("muster_rendezvous_generation{job=\"digits\"}"), 2);
  EXPECT_EQ(metrics.Value("muster_rendezvous_members{job=\"digits\"}"), 2);
  EXPECT_EQ(metrics.Value("muster_rendezvous_generations_total{job=\"digits\",reason=\"formed\"}"),
            1);
  EXPECT_EQ(metrics.Value("muster_worker_restarts_total{job=\"digits\",reason=\"worker_failed\"}"),
            4);
  EXPECT_EQ(metrics.Value("muster_worker_exits_total{job=\"digits\",kind=\"exit\"}"), 1);
  EXPECT_EQ(metrics.Value("muster_incidents_total{job=\"digits\",kind=\"exit\"}"), 1);
  EXPECT_EQ(metrics.Value("muster_agent_workers{job=\"digits\",state=\"running\"}"), 4);
  const std::string recovery = "muster_recovery_duration_seconds";
  EXPECT_EQ(metrics.Value(recovery + "_count{job=\"digits\"}"), 1);
  EXPECT_EQ(metrics.Value(recovery + "_sum{job=\"digits\"}"), 0.3);
  EXPECT_EQ(metrics.Value(recovery + "_bucket{job=\"digits\",le=\"0.25\"}"), 0);
  EXPECT_EQ(metrics.Value(recovery + "_bucket{job=\"digits\",le=\"0.5\"}"), 1);
  EXPECT_EQ(metrics.Value("muster_rendezvous_duration_seconds_sum{job=\"digits\"}"), 2);
}

TEST(MetricsText, AKillForLackOfMemoryIsAKindOfItsOwn) {
  TestJob job(NodesFrom(1, 1));
  job.Join("a");
  WorkerFailed failed;
  failed.generation = 1;
  failed.status = ExitStatus::Signalled(9);
  failed.evidence.out_of_memory = true;
  job.Say("a", failed);
  job.Stopped("a");
  const StrictReader metrics(Text(ReportOf(job, "digits")));
  EXPECT_EQ(metrics.Value("muster_worker_exits_total{job=\"digits\",kind=\"oom\"}"), 1);
  EXPECT_EQ(metrics.Value("muster_incidents_total{job=\"digits\",kind=\"oom\"}"), 1);
}

TEST(MetricsText, ProgressIsAStepAndATime) {
  TestJob job(NodesFrom(1, 1));
  job.Join("a");
  job.Say("a", Heartbeat{1, Progress{1, 12'345'678, 1500ms}});
  const StrictReader metrics(Text(ReportOf(job, "digits")));
  EXPECT_EQ(metrics.Value("muster_step{job=\"digits\"}"), 12'345'678);
  EXPECT_EQ(metrics.Value("muster_last_progress_timestamp_seconds{job=\"digits\"}"),
            1'764'442'414.623);
}

TEST(MetricsText, TheMasterItselfIsMeasured) {
  MasterReport report;
  report.heartbeat_lag.Add(2ms);
  report.heartbeat_lag.Add(700ms);
  report.store.written.Add(3ms);
  report.store.failed.Add(1s);
  EXPECT_EQ(StrictReader(Text(report)).Value("muster_store_trouble"), 0);
  report.store_trouble = {"the disk is full", 12s};
  const StrictReader metrics(Text(report));
  EXPECT_EQ(metrics.Value("muster_heartbeat_lag_seconds_bucket{le=\"0.0025\"}"), 1);
  EXPECT_EQ(metrics.Value("muster_heartbeat_lag_seconds_count"), 2);
  const std::string store = "muster_store_operation_duration_seconds";
  EXPECT_EQ(metrics.Value(store + "_count{op=\"write\",outcome=\"ok\"}"), 1);
  EXPECT_EQ(metrics.Value(store + "_sum{op=\"write\",outcome=\"error\"}"), 1);
  EXPECT_EQ(metrics.Value("muster_store_trouble"), 1);
}

TEST(MetricsText, AnyNameOfAJobIsEscaped) {
  TestJob job(NodesFrom(1, 1));
  job.Join("a");
  const StrictReader metrics(Text(ReportOf(job, "a\"b\\c\nd")));
  EXPECT_EQ(metrics.Value("muster_rendezvous_members{job=\"a\\\"b\\\\c\\nd\"}"), 1);
}

TEST(MetricsText, AMasterWithoutJobsHasMetricsToo) {
  const StrictReader metrics(Text({}));
  EXPECT_EQ(metrics.Value("muster_jobs{phase=\"running\"}"), 0);
  EXPECT_EQ(metrics.types().count("muster_recovery_duration_seconds"), 1u);
}

}  // namespace
}  // namespace muster
