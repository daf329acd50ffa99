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

TEST(Settings, EachDifferenceIsSpelledOutWithWhatToDo) {
  JobSettings job;
  JobSettings node;
  job.max_restarts = 3;
  node.keep_alive_interval = 1500ms;
  EXPECT_EQ(DescribeDifference(job, node),
            "--max-restarts is 3 in the job and 0 on this node; "
            "keep_alive_interval of --rdzv-conf is 5s in the job and 1500ms on this node: "
            "give all nodes the same");
}

TEST(Settings, WhatAllNodesMustAgreeOnIsCompared) {
  JobSettings other;
  other.nodes_min = 2;
  other.nodes_max = 3;
  other.max_restarts = 4;
  other.max_start_failures = 11;
  other.max_restart_delay = 12s;
  other.fatal_exit_codes.Add(3);
  other.fatal_exit_codes.Add(4);
  other.keep_alive_interval = 7s;
  other.keep_alive_max_attempt = 8;
  other.fencing = Fencing::kStrict;
  other.join_policy = JoinPolicy::kRestart;
  EXPECT_EQ(DescribeDifference(JobSettings(), other),
            "--nnodes is 1 in the job and 2:3 on this node; "
            "--max-restarts is 0 in the job and 4 on this node; "
            "--max-start-failures is 0 in the job and 11 on this node; "
            "--max-restart-delay is 30s in the job and 12s on this node; "
            "--fatal-exit-codes is none in the job and 3-4 on this node; "
            "keep_alive_interval of --rdzv-conf is 5s in the job and 7s on this node; "
            "keep_alive_max_attempt of --rdzv-conf is 3 in the job and 8 on this node; "
            "--fencing is token in the job and strict on this node; "
            "--join-policy is now in the job and restart on this node: give all nodes the same");
}

TEST(Settings, TimesThatANodeKeepsForItselfMayDiffer) {
  JobSettings other;
  other.last_call = 5s;
  other.join_timeout = 6s;
  other.exit_barrier_timeout = 10s;
  other.stall_timeout = 12s;
  other.master_loss_timeout = 9s;
  EXPECT_EQ(DescribeDifference(JobSettings(), other), "");
}

TEST(Settings, AStrictFenceIsAsLongOnEveryNode) {
  JobSettings job;
  job.fencing = Fencing::kStrict;
  JobSettings node = job;
  node.master_loss_timeout = 9s;
  EXPECT_EQ(DescribeDifference(job, node),
            "--master-loss-timeout is 1h in the job and 9s on this node: give all nodes the same");
}

struct Unusable {
  void (*spoil)(JobSettings&);
  const char* error;
};

TEST(Settings, AnUnusableSettingIsNamed) {
  const Unusable cases[] = {
      {[](JobSettings& s) { s.nodes_min = 0; }, "--nnodes is 0:1: a job needs at least 1 node"},
      {[](JobSettings& s) { s.nodes_min = 2; }, "--nnodes is 2:1: MIN must not exceed MAX"},
      {[](JobSettings& s) { s.max_restarts = -1; }, "--max-restarts is -1: give 0 or more"},
      {[](JobSettings& s) { s.max_start_failures = -1; },
       "--max-start-failures is -1: give 0 or more"},
      {[](JobSettings& s) { s.fatal_exit_codes.Add(0); },
       "--fatal-exit-codes has 0: a worker that exits with 0 has not failed"},
      {[](JobSettings& s) { s.stall_timeout = -1s; }, "--stall-timeout is -1s: give 0 or more"},
      {[](JobSettings& s) { s.max_restart_delay = -1s; },
       "--max-restart-delay is -1s: give 0 or more"},
      {[](JobSettings& s) { s.last_call = -1s; },
       "last_call_timeout of --rdzv-conf is -1s: give 0 or more"},
      {[](JobSettings& s) { s.join_timeout = 0s; },
       "join_timeout of --rdzv-conf is 0s: give a time above zero"},
      {[](JobSettings& s) { s.keep_alive_interval = 0s; },
       "keep_alive_interval of --rdzv-conf is 0s: give a time above zero"},
      {[](JobSettings& s) { s.keep_alive_max_attempt = 0; },
       "keep_alive_max_attempt of --rdzv-conf is 0: give 1 or more"},
      {[](JobSettings& s) { s.master_loss_timeout = 0s; },
       "--master-loss-timeout is 0s: give a time above zero"},
      {[](JobSettings& s) { s.exit_barrier_timeout = Duration::max(); },
       "--exit-barrier-timeout is 9223372036854775807ns: give at most 8784h"},
      {[](JobSettings& s) { s.keep_alive_interval = 24h * 366; },
       "keep_alive_interval of --rdzv-conf is 8784h and keep_alive_max_attempt is 3: their "
       "product may be at most 8784h"},
      {[](JobSettings& s) { s.node_unit = 0; }, "--node-unit is 0: give 1 or more"},
      {[](JobSettings& s) { s.node_unit = 2; },
       "--nnodes is 1 and --node-unit is 2: give multiples of it"},
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
