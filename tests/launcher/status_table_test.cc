#include "launcher/status_table.h"

#include <gtest/gtest.h>

#include <string>

namespace muster {
namespace {

v1::JobStatus Running(const std::string& id) {
  v1::JobStatus job;
  job.set_job_id(id);
  job.set_phase(v1::JOB_PHASE_RUNNING);
  job.set_generation(3);
  job.set_generation_age_ms(125'000);
  job.set_members(1);
  job.set_waiting(1);
  job.set_world_size(8);
  job.set_restarts_used(1);
  job.set_restarts_max(3);
  job.set_step(1204);
  job.set_progress_ago_ms(3'100);
  v1::NodeStatus* member = job.add_nodes();
  member->set_node_id("node1");
  member->set_state(v1::NODE_STATE_READY);
  member->set_address("10.0.0.1");
  member->set_first_rank(0);
  member->set_slots(8);
  member->set_heard_ago_ms(2'400);
  member->set_step(1204);
  member->set_progress_ago_ms(3'100);
  v1::NodeStatus* spare = job.add_nodes();
  spare->set_node_id("node2");
  spare->set_state(v1::NODE_STATE_SPARE);
  spare->set_slots(8);
  spare->set_heard_ago_ms(900);
  spare->mutable_why()->set_text("spare: 1 node is in, as many as may be");
  spare->mutable_why()->set_time_left_ms(3'600'000);
  return job;
}

TEST(StatusTable, OneJobIsALineAndItsNodes) {
  v1::StatusResponse status;
  *status.add_jobs() = Running("digits");
  EXPECT_EQ(StatusTable(status, false),
            "digits: running: generation 3 runs for 2m05s on 1 node with 8 workers; step 1204 3s "
            "ago; 1 node waiting; 1 of 3 restarts used\n"
            "NODE    STATE   RANKS   STEP   PROGRESS   HEARTBEAT   REASON\n"
            "node1   ready   0-7     1204   3s         2s\n"
            "node2   spare   -       -      -          900ms       spare: 1 node is in, as many as "
            "may be; at most 1h00m more\n");
}

TEST(StatusTable, TheWideOneHasAddressesAndIncidents) {
  v1::StatusResponse status;
  *status.add_jobs() = Running("digits");
  v1::IncidentStatus* incident = status.mutable_jobs(0)->add_incidents();
  incident->set_number(1);
  incident->set_generation(2);
  incident->set_unix_ms(1'764'442'416'123);
  incident->set_outcome(v1::INCIDENT_OUTCOME_RECOVERED);
  incident->set_kind(v1::INCIDENT_KIND_OOM);
  incident->set_charged(true);
  incident->set_text("rank 3 on node node1 failed");
  incident->set_stop_ms(40);
  incident->set_rendezvous_ms(0);
  incident->set_start_ms(1'200);
  const std::string table = StatusTable(status, true);
  EXPECT_NE(table.find("NODE    STATE   RANKS   STEP   PROGRESS   HEARTBEAT   ADDRESS    REASON\n"),
            table.npos);
  EXPECT_NE(table.find("node1   ready   0-7     1204   3s         2s          10.0.0.1\n"),
            table.npos)
      << table;
  EXPECT_NE(
      table.find("1          2025-11-29T18:53:36.123Z   2            oom    recovered   yes       "
                 "0ms      40ms   0ms          1s      -       rank 3 on node node1 failed\n"),
      table.npos)
      << table;
}

TEST(StatusTable, AWaitingJobSaysForWhatAndAClosedOneHowItEnded) {
  v1::StatusResponse status;
  v1::JobStatus* job = status.add_jobs();
  job->set_job_id("digits");
  job->mutable_why()->set_text("waiting for nodes: 1 of 2 are here");
  job->mutable_why()->set_time_left_ms(59'000);
  EXPECT_EQ(StatusTable(status, false),
            "digits: forming: waiting for nodes: 1 of 2 are here; at most 59s more\n");
  job->set_phase(v1::JOB_PHASE_STOPPING);
  job->mutable_why()->clear_time_left_ms();
  job->mutable_why()->set_text("stopping: 0 of 2 members have stopped");
  EXPECT_EQ(StatusTable(status, false), "digits: stopping: 0 of 2 members have stopped\n");
  job->set_phase(v1::JOB_PHASE_CLOSED);
  job->mutable_verdict()->set_succeeded(true);
  EXPECT_EQ(StatusTable(status, false), "digits: closed: succeeded\n");
  job->mutable_verdict()->set_succeeded(false);
  job->mutable_verdict()->set_exit_code(9);
  job->mutable_verdict()->set_cause("job failed: rank 3");
  EXPECT_EQ(StatusTable(status, false), "digits: closed: job failed: rank 3 (exit code 9)\n");
}

TEST(StatusTable, OneRestartThatIsAllowedIsStillCountedAmongRestarts) {
  v1::StatusResponse status;
  *status.add_jobs() = Running("digits");
  status.mutable_jobs(0)->set_restarts_used(0);
  status.mutable_jobs(0)->set_restarts_max(1);
  EXPECT_NE(StatusTable(status, false).find("; 0 of 1 restarts used\n"), std::string::npos);
}

TEST(StatusTable, SeveralJobsHaveALineEach) {
  v1::StatusResponse status;
  EXPECT_EQ(StatusTable(status, false), "no jobs\n");
  *status.add_jobs() = Running("a");
  *status.add_jobs() = Running("digits");
  const std::string table = StatusTable(status, false);
  EXPECT_EQ(table.substr(0, table.find('\n')),
            "JOB      PHASE     GENERATION   NODES   WORKERS   STEP   RESTARTS   AGE     REASON");
  EXPECT_NE(
      table.find("\na        running   3            1       8         1204   1/3        2m05s   "),
      table.npos)
      << table;
}

TEST(StatusTable, AStoreThatCannotBeWrittenIsSaidFirst) {
  v1::StatusResponse status;
  status.set_unix_ms(1'764'442'416'123);
  status.mutable_store_trouble()->set_why("/var/lib/muster/state: No space left on device");
  status.mutable_store_trouble()->set_age_ms(6'123);
  EXPECT_EQ(StatusTable(status, false),
            "the state cannot be written since 2025-11-29T18:53:30.000Z: /var/lib/muster/state: No "
            "space left on device; jobs wait\nno jobs\n");
}

TEST(StatusTable, WhatANodeCallsItselfCannotMoveTheCursor) {
  v1::StatusResponse status;
  *status.add_jobs() = Running("digits");
  status.mutable_jobs(0)->mutable_nodes(0)->set_node_id("a\033[2Jb\nc");
  EXPECT_EQ(StatusTable(status, true).find('\033'), std::string::npos);
}

}  // namespace
}  // namespace muster
