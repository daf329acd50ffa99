#include "rendezvous/settings.h"

#include <gtest/gtest.h>

#include <chrono>

namespace muster {
namespace {

using namespace std::chrono_literals;

TEST(Settings, DefaultsAreUsable) { EXPECT_EQ(DescribeError(JobSettings()), ""); }

TEST(Settings, EqualSettingsDoNotDiffer) {
  EXPECT_EQ(DescribeDifference(JobSettings(), JobSettings()), "");
}

TEST(Settings, EachDifferenceIsSpelledOut) {
  JobSettings job;
  JobSettings node;
  job.max_restarts = 3;
  node.last_call = 1500ms;
  EXPECT_EQ(DescribeDifference(job, node),
            "max_restarts is 3 in the job and 0 on this node; "
            "last_call is 30s in the job and 1500ms on this node");
}

TEST(Settings, EveryFieldIsCompared) {
  JobSettings other;
  other.nodes_min = 2;
  other.nodes_max = 3;
  other.max_restarts = 4;
  other.last_call = 5s;
  other.join_timeout = 6s;
  other.keep_alive_interval = 7s;
  other.keep_alive_max_attempt = 8;
  other.master_loss_timeout = 9s;
  other.exit_barrier_timeout = 10s;
  other.fencing = Fencing::kStrict;
  other.join_policy = JoinPolicy::kRestart;
  other.max_start_failures = 11;
  other.fatal_exit_codes.Add(3);
  other.fatal_exit_codes.Add(4);
  other.stall_timeout = 12s;
  EXPECT_EQ(DescribeDifference(JobSettings(), other),
            "nodes_min is 1 in the job and 2 on this node; "
            "nodes_max is 1 in the job and 3 on this node; "
            "max_restarts is 0 in the job and 4 on this node; "
            "max_start_failures is 0 in the job and 11 on this node; "
            "fatal_exit_codes is none in the job and 3-4 on this node; "
            "stall_timeout is 0s in the job and 12s on this node; "
            "last_call is 30s in the job and 5s on this node; "
            "join_timeout is 10m in the job and 6s on this node; "
            "keep_alive_interval is 5s in the job and 7s on this node; "
            "keep_alive_max_attempt is 3 in the job and 8 on this node; "
            "master_loss_timeout is 1h in the job and 9s on this node; "
            "exit_barrier_timeout is 5m in the job and 10s on this node; "
            "fencing is token in the job and strict on this node; "
            "join_policy is now in the job and restart on this node");
}

struct Unusable {
  void (*spoil)(JobSettings&);
  const char* error;
};

TEST(Settings, AnUnusableSettingIsNamed) {
  const Unusable cases[] = {
      {[](JobSettings& s) { s.nodes_min = 0; }, "nodes_min is 0: a job needs at least 1 node"},
      {[](JobSettings& s) { s.nodes_min = 2; },
       "nodes_min is 2 and nodes_max is 1: MIN must not exceed MAX"},
      {[](JobSettings& s) { s.max_restarts = -1; }, "max_restarts is -1: give 0 or more"},
      {[](JobSettings& s) { s.max_start_failures = -1; },
       "max_start_failures is -1: give 0 or more"},
      {[](JobSettings& s) { s.fatal_exit_codes.Add(0); },
       "fatal_exit_codes has 0: a worker that exits with 0 has not failed"},
      {[](JobSettings& s) { s.stall_timeout = -1s; }, "stall_timeout is -1s: give 0 or more"},
      {[](JobSettings& s) { s.last_call = -1s; }, "last_call is -1s: give 0 or more"},
      {[](JobSettings& s) { s.join_timeout = 0s; }, "join_timeout is 0s: give a time above zero"},
      {[](JobSettings& s) { s.keep_alive_interval = 0s; },
       "keep_alive_interval is 0s: give a time above zero"},
      {[](JobSettings& s) { s.keep_alive_max_attempt = 0; },
       "keep_alive_max_attempt is 0: give 1 or more"},
      {[](JobSettings& s) { s.master_loss_timeout = 0s; },
       "master_loss_timeout is 0s: give a time above zero"},
      {[](JobSettings& s) { s.exit_barrier_timeout = Duration::max(); },
       "exit_barrier_timeout is 9223372036854775807ns: give at most 87600h"},
      {[](JobSettings& s) { s.keep_alive_interval = 24h * 3650; },
       "keep_alive_interval is 87600h and keep_alive_max_attempt is 3: their product may be at "
       "most 87600h"},
      {[](JobSettings& s) { s.join_policy = JoinPolicy::kCheckpoint; },
       "join_policy checkpoint is not available yet: use now or restart"},
  };
  for (const Unusable& unusable : cases) {
    JobSettings settings;
    unusable.spoil(settings);
    EXPECT_EQ(DescribeError(settings), unusable.error);
  }
}

TEST(Settings, DurationsUseTheLargestUnitThatDividesThem) {
  EXPECT_EQ(DurationText(0s), "0s");
  EXPECT_EQ(DurationText(30s), "30s");
  EXPECT_EQ(DurationText(60s), "1m");
  EXPECT_EQ(DurationText(90s), "90s");
  EXPECT_EQ(DurationText(7200s), "2h");
  EXPECT_EQ(DurationText(1500ms), "1500ms");
  EXPECT_EQ(DurationText(2us), "2us");
  EXPECT_EQ(DurationText(7ns), "7ns");
}

}  // namespace
}  // namespace muster
