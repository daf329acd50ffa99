#include "rendezvous/status_codec.h"

#include <gtest/gtest.h>

#include <string>

#include "base/json_leaves.h"
#include "rendezvous/status_json.h"
#include "tests/rendezvous/test_job.h"

namespace muster {
namespace {

using namespace std::chrono_literals;

MasterReport ReportOf(const TestJob& job) {
  MasterReport report;
  report.jobs.push_back(
      {StatusOf(job.machine(), job.journal().recorder(), job.now(), StatusDetail::kFull),
       job.journal().counters()});
  return report;
}

TEST(StatusCodec, TheWordsOfTheWireAreThoseOfTheMachine) {
  for (int i = 0; i < v1::JobPhase_ARRAYSIZE; ++i) {
    EXPECT_EQ(Word(static_cast<v1::JobPhase>(i)), Label(static_cast<RoundPhase>(i)));
  }
  for (int i = 0; i < v1::NodeState_ARRAYSIZE; ++i) {
    EXPECT_EQ(Word(static_cast<v1::NodeState>(i)), Label(static_cast<NodeState>(i)));
  }
  EXPECT_EQ(static_cast<size_t>(v1::NodeState_ARRAYSIZE), kNodeStates);
  for (int i = 0; i < v1::IncidentKind_ARRAYSIZE; ++i) {
    EXPECT_EQ(Word(static_cast<v1::IncidentKind>(i)), Label(static_cast<IncidentKind>(i)));
  }
  for (int i = 0; i < v1::IncidentOutcome_ARRAYSIZE; ++i) {
    EXPECT_EQ(Word(static_cast<v1::IncidentOutcome>(i)), Label(static_cast<IncidentOutcome>(i)));
  }
}

TEST(StatusCodec, JsonHasEveryField) {
  TestJob job(NodesFrom(2, 2, 1));
  job.Join("a");
  job.Join("b");
  job.Say("a", Heartbeat{1, Progress{1, 1200, 3s}});
  job.Failed("b", 3, 60s);
  job.Advance(250ms);
  job.Stopped("b");
  MasterReport report = ReportOf(job);
  report.store_trouble = {"the disk is full", 12s};
  const std::string json = StatusJson(Encode(report, 1'764'442'416'123));
  const JsonLeaves leaves = ReadJsonLeaves(json);
  EXPECT_TRUE(leaves.complete) << json;
  const auto value = [&](const std::string& path) {
    const auto found = leaves.values.find(path);
    return found == leaves.values.end() ? "null" : found->second;
  };
  EXPECT_EQ(value("time"), "2025-11-29T18:53:36.123Z");
  EXPECT_EQ(value("store_trouble.why"), "the disk is full");
  EXPECT_EQ(value("store_trouble.age_ms"), "12000");
  EXPECT_EQ(value("jobs.0.job"), "job");
  EXPECT_EQ(value("jobs.0.step"), "1200");
  EXPECT_EQ(value("jobs.0.progress_ago_ms"), "3250");
  EXPECT_EQ(value("jobs.0.nodes.0.step"), "1200");
  EXPECT_EQ(value("jobs.0.nodes.1.step"), "null");
  EXPECT_EQ(value("jobs.0.phase"), "stopping");
  EXPECT_EQ(value("jobs.0.why.text"), "stopping: 1 of 2 members have stopped");
  EXPECT_EQ(value("jobs.0.why.time_left_ms"), "599750");
  EXPECT_EQ(value("jobs.0.restarts_max"), "1");
  EXPECT_EQ(value("jobs.0.verdict"), "null");
  EXPECT_EQ(value("jobs.0.nodes.1.node"), "b");
  EXPECT_EQ(value("jobs.0.nodes.1.state"), "stopped");
  EXPECT_EQ(value("jobs.0.nodes.1.first_rank"), "2");
  EXPECT_EQ(value("jobs.0.nodes.1.why.reason"), "stopping");
  EXPECT_EQ(value("jobs.0.nodes.0.why"), "null");
  EXPECT_EQ(value("jobs.0.incidents.0.outcome"), "open");
  EXPECT_EQ(value("jobs.0.incidents.0.kind"), "exit");
  EXPECT_EQ(value("jobs.0.incidents.0.failed_rank"), "2");
  EXPECT_EQ(value("jobs.0.incidents.0.failed_exit_code"), "3");
  EXPECT_EQ(value("jobs.0.incidents.0.failed_signal"), "null");
  EXPECT_EQ(value("jobs.0.incidents.0.out_of_memory"), "false");
  EXPECT_EQ(value("jobs.0.incidents.0.stop_ms"), "null");
  EXPECT_EQ(value("jobs.0.incidents.0.next_generation"), "null");
}

TEST(StatusCodec, AnIncidentIsOneLineWhosePhasesSumUp) {
  TestJob job(NodesFrom(1, 1, 1));
  job.Join("a");
  job.Failed("a", 3, 60s);
  job.Advance(250ms);
  job.Stopped("a");
  job.Advance(50ms);
  job.Say("a", WorkersStarted{2});
  const std::string line = IncidentJson("job", 1, Encode(job.news().back()));
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const auto values = ReadJsonLeaves(line).values;
  EXPECT_EQ(values.at("outcome"), "recovered");
  EXPECT_EQ(values.at("stop_ms"), "250");
  EXPECT_EQ(values.at("rendezvous_ms"), "0");
  EXPECT_EQ(values.at("start_ms"), "50");
  EXPECT_EQ(values.at("total_ms"), "300");
  EXPECT_EQ(values.count("ready_ms"), 0u);
}

}  // namespace
}  // namespace muster
