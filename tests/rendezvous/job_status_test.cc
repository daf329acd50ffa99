#include "rendezvous/job_status.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/rendezvous/test_job.h"

namespace muster {
namespace {

using namespace std::chrono_literals;

JobStatus Of(const TestJob& job, StatusDetail detail = StatusDetail::kFull) {
  return StatusOf(job.machine(), job.journal().recorder(), job.now(), detail);
}

std::string States(const TestJob& job) {
  std::string text;
  for (const NodeStatus& node : Of(job).nodes) {
    text += (text.empty() ? "" : " ") + node.id + ":" + Label(node.state);
  }
  return text;
}

TEST(JobStatus, AWaitingJobSaysForWhatAndUntilWhen) {
  TestJob job(NodesFrom(2, 2));
  job.Join("a");
  job.Advance(10s);
  const JobStatus status = Of(job);
  EXPECT_EQ(status.phase, RoundPhase::kForming);
  EXPECT_EQ(status.reason_label, "waiting_for_nodes");
  EXPECT_EQ(status.reason, "waiting for nodes: 1 of 2 are here");
  EXPECT_EQ(status.time_left, 590s);
  EXPECT_EQ(status.waiting, 1);
  ASSERT_EQ(status.nodes.size(), 1u);
  EXPECT_EQ(status.nodes[0].state, NodeState::kWaiting);
  EXPECT_EQ(status.nodes[0].reason_label, "waiting_for_nodes");
  EXPECT_TRUE(status.nodes[0].time_left.has_value());
  EXPECT_EQ(status.nodes[0].first_rank, -1);
}

TEST(JobStatus, WhoIsMissingIsNamedWhereThatIsKnown) {
  TestJob fixed(NodesFrom(6, 6));
  Hello hello = fixed.HelloOf("a");
  hello.fixed_group_rank = 2;
  fixed.Join(hello);
  EXPECT_EQ(Of(fixed).reason,
            "waiting for nodes: 1 of 6 are here; missing: node rank 0, node rank 1, node rank 3 "
            "and 2 more");
  fixed.Advance(600s);
  EXPECT_NE(
      Of(fixed).verdict->cause.find("missing: node rank 0, node rank 1, node rank 3 and 2 more"),
      std::string::npos)
      << Of(fixed).verdict->cause;

  TestJob job(NodesFrom(3, 3));
  for (const char* name : {"a", "b", "c"}) job.Join(name);
  for (const char* name : {"c", "b"}) job.Break(name);
  job.Stopped("a");
  EXPECT_EQ(Of(job).reason, "waiting for nodes: 1 of 3 are here; missing: b, c");
  EXPECT_EQ(Of(job).nodes.front().reason, Of(job).reason);
  job.Join("b");
  EXPECT_EQ(Of(job).reason, "waiting for nodes: 2 of 3 are here; missing: c");
  job.Restart();
  job.Join("a");
  EXPECT_EQ(Of(job).reason_label, "recovering");
  EXPECT_NE(Of(job).reason.find("; missing: b, c"), std::string::npos) << Of(job).reason;
}

TEST(JobStatus, EveryStateOfANodeIsTold) {
  TestJob job(NodesFrom(2, 2, 1));
  for (const char* name : {"a", "b", "c"}) job.Join(name);
  EXPECT_EQ(States(job), "a:starting b:starting c:spare");
  job.Say("a", WorkersStarted{1});
  EXPECT_EQ(States(job), "a:running b:starting c:spare");
  job.Say("a", WorkersReady{1});
  EXPECT_EQ(States(job), "a:ready b:starting c:spare");
  job.Failed("a", 3, 60s);
  EXPECT_EQ(States(job), "a:stopping b:stopping c:waiting");
  job.Stopped("b");
  EXPECT_EQ(States(job), "a:stopping b:stopped c:waiting");
  job.Break("b");
  EXPECT_EQ(States(job), "a:stopping b:lost c:waiting");
  job.Stopped("a");
  EXPECT_EQ(Of(job).generation, 2);
  job.Succeeded("a");
  job.Say("c", Leaving{2, LeaveCause::kSignal, "SIGTERM"});
  EXPECT_EQ(States(job), "a:succeeded c:leaving");
  job.Break("c");
  EXPECT_EQ(States(job), "a:waiting c:left");
}

// Each way in which a job of a and b, with the spare c, can end.
struct Ending {
  const char* name;
  std::function<void(TestJob*)> end;
  const char* states;  // when all have heard the verdict and gone
};

TEST(JobStatus, WhoHasHeardTheVerdictAndGoneIsNotLost) {
  const auto both = [](TestJob* job, const AgentMessage& message) {
    for (const char* name : {"a", "b"}) job->Say(name, message);
  };
  const std::vector<Ending> endings = {
      {"success", [&](TestJob* job) { both(job, WorkersSucceeded{1}); },
       "a:succeeded b:succeeded c:left"},
      {"failure",
       [&](TestJob* job) {
         job->Failed("b", 3, 60s);
         both(job, WorkersStopped{1});
       },
       "a:left b:left c:left"},
      {"stop",
       [&](TestJob* job) {
         job->Step(StopRequested{"anna"});
         both(job, WorkersStopped{1});
       },
       "a:left b:left c:left"},
      {"drain",
       [&](TestJob* job) {
         job->Step(DrainRequested{"", "anna", 90s});
         both(job, WorkersSucceeded{1, 0, true});
       },
       "a:left b:left c:left"},
  };
  for (const Ending& ending : endings) {
    SCOPED_TRACE(ending.name);
    TestJob job(NodesFrom(2, 2));
    for (const char* name : {"a", "b", "c"}) job.Join(name);
    ending.end(&job);
    ASSERT_EQ(Of(job).phase, RoundPhase::kClosed);
    for (const char* name : {"a", "b", "c"}) job.Break(name, /*half_closed=*/true);
    EXPECT_EQ(States(job), ending.states);
    // The places are forgotten with the master.
    job.Restart();
    EXPECT_EQ(States(job), "a:left b:left c:left");
  }
}

TEST(JobStatus, WhoVanishedBeforeTheVerdictOrWithoutHearingItIsLost) {
  TestJob job(NodesFrom(3, 3));
  for (const char* name : {"a", "b", "c"}) job.Join(name);
  job.Step(StopRequested{"anna"});
  job.Break("a");
  for (const char* name : {"b", "c"}) job.Stopped(name);
  ASSERT_EQ(Of(job).phase, RoundPhase::kClosed);
  job.Break("b");
  job.Break("c", /*half_closed=*/true);
  EXPECT_EQ(States(job), "a:lost b:lost c:left");
  job.Restart();
  EXPECT_EQ(States(job), "a:lost b:lost c:left");
  job.Rejoin("b", WorkersPhase::kNone);
  job.Break("b", /*half_closed=*/true);
  EXPECT_EQ(States(job), "a:lost b:left c:left");
}

TEST(JobStatus, ADrainIsWaitedForAndHasADeadline) {
  TestJob job(NodesFrom(1, 2));
  job.Join("a");
  job.Join("b");
  job.Step(DrainRequested{"b", "anna", 90s});
  EXPECT_EQ(States(job), "a:starting b:draining");
  EXPECT_EQ(Of(job).reason_label, "draining");
  EXPECT_EQ(Of(job).time_left, 90s);
}

TEST(JobStatus, RanksAddressesAndHeartbeatsAreThoseOfTheMoment) {
  TestJob job(NodesFrom(2, 2));
  job.Join("a");
  job.Join("b");
  job.Mute("b");
  job.Advance(7s);
  const JobStatus status = Of(job);
  EXPECT_EQ(status.phase, RoundPhase::kRunning);
  EXPECT_EQ(status.generation_age, 7s);
  EXPECT_EQ(status.members, 2);
  EXPECT_EQ(status.waiting, 0);
  EXPECT_EQ(status.world_size, 4);
  EXPECT_EQ(status.nodes[1].first_rank, 2);
  EXPECT_EQ(status.nodes[1].slots, 2);
  EXPECT_EQ(status.nodes[1].heard_ago, 7s);
  EXPECT_EQ(status.nodes[0].address, job.HelloOf("a").own_addresses.front());
  EXPECT_EQ(status.time_left, std::nullopt);
}

TEST(JobStatus, TheStepIsThatOfTheNodeThatIsFurthestBehind) {
  TestJob job(NodesFrom(2, 2, 1));
  job.Join("a");
  job.Join("b");
  EXPECT_EQ(Of(job).step, std::nullopt);
  job.Say("a", Heartbeat{1, Progress{1, 120, 3s}});
  EXPECT_EQ(Of(job).step, 120);
  job.Say("b", Heartbeat{1, Progress{1, 119, 40s}});
  job.Advance(2s);
  JobStatus status = Of(job);
  EXPECT_EQ(status.step, 119);
  EXPECT_EQ(status.progress_ago, 42s);
  EXPECT_EQ(status.nodes[0].step, 120);
  EXPECT_EQ(status.nodes[0].progress_ago, 5s);
  job.Say("b", Heartbeat{1, Progress{1, 120, 1s}});
  EXPECT_EQ(Of(job).progress_ago, 1s) << "the last one to get there";

  job.Failed("b", 3, 60s);
  job.Stopped("a");
  EXPECT_EQ(Of(job).step, 120) << "how far it came";
  job.Stopped("b");
  EXPECT_EQ(Of(job).generation, 2);
  EXPECT_EQ(Of(job).step, std::nullopt);
  job.Say("a", Heartbeat{1, Progress{1, 120, 9s}});
  EXPECT_EQ(Of(job).step, std::nullopt) << "of a generation that is over";
}

TEST(JobStatus, WorkersAreCountedByTheStateOfTheirNode) {
  TestJob job(NodesFrom(2, 2, 1));
  for (const char* name : {"a", "b", "c"}) job.Join(name);
  job.Say("a", WorkersStarted{1});
  const JobStatus status = Of(job, StatusDetail::kSummary);
  EXPECT_EQ(status.workers[static_cast<size_t>(NodeState::kRunning)], 2);
  EXPECT_EQ(status.workers[static_cast<size_t>(NodeState::kStarting)], 2);
  EXPECT_EQ(status.workers[static_cast<size_t>(NodeState::kSpare)], 0) << "it runs none";
  job.Break("b");
  EXPECT_EQ(Of(job).workers[static_cast<size_t>(NodeState::kLost)], 2);
}

TEST(JobStatus, TheEndOfAStopHasADeadlineToo) {
  TestJob job(NodesFrom(2, 2, 1));
  job.Join("a");
  job.Join("b");
  job.Failed("a", 3, 60s);
  const JobStatus status = Of(job);
  EXPECT_EQ(status.reason, "stopping: 0 of 2 members have stopped");
  EXPECT_EQ(status.time_left, 600s);
}

TEST(JobStatus, AClosedJobTellsItsVerdict) {
  TestJob job(NodesFrom(1, 1));
  job.Join("a");
  job.Failed("a", 3, 60s);
  job.Stopped("a");
  const JobStatus status = Of(job);
  EXPECT_EQ(status.phase, RoundPhase::kClosed);
  ASSERT_TRUE(status.verdict.has_value());
  EXPECT_EQ(status.verdict->exit_code, 3);
  ASSERT_EQ(status.incidents.size(), 1u);
  EXPECT_EQ(status.incidents[0].outcome, IncidentOutcome::kJobEnded);
}

TEST(JobStatus, ASummaryLeavesOutWhatIsLong) {
  TestJob job(NodesFrom(1, 1));
  job.Join("a");
  const JobStatus status = Of(job, StatusDetail::kSummary);
  EXPECT_TRUE(status.nodes.empty());
  EXPECT_EQ(status.members, 1);
}

TEST(JobStatus, AMemberThatARecoveringMasterHasNotHeardOfIsLost) {
  TestJob job(NodesFrom(2, 2));
  Hello hello = job.HelloOf("a");
  hello.running.phase = WorkersPhase::kRunning;
  Assignment& place = hello.running.assignment;
  place.instance = 1;
  place.generation = 7;
  place.group_rank = 1;
  place.group_world_size = 2;
  place.rank_base = 2;
  place.world_size = 4;
  job.Join(hello);
  EXPECT_EQ(States(job), ":lost a:running");
  EXPECT_EQ(Of(job).reason_label, "recovering");
  EXPECT_EQ(Of(job).time_left, 10s);
}

}  // namespace
}  // namespace muster
