#include "rendezvous/state_codec.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "proto/state.pb.h"

namespace muster {
namespace {

using namespace std::chrono_literals;
using Stage = JobRecord::Stage;

// Random records that a round machine could have given.
class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  JobRecord Any() {
    JobRecord record;
    record.job_id = Text() + "x";
    record.instance = random_();
    record.stage = static_cast<Stage>(Int(0, 3));
    record.settings = JobSettings();
    record.settings->nodes_max = Int(1, 9);
    record.settings->max_restarts = 30;
    record.settings->master_loss_timeout = std::chrono::milliseconds(Int(60'000, 600'000));
    record.generation = Int(1, 1000);
    record.highest_heard = record.generation + Int(0, 3);
    record.restarts_used = Int(0, 30);
    record.quick_failures = Int(0, 3);
    record.last_size = Int(0, 9);
    if (Int(0, 2) == 0) record.last_leave = Leaving{Int(0, 9), LeaveCause(Int(0, 2)), Text()};
    AddNodes(&record);
    AddIncidents(&record);
    if (record.stage != Stage::kClosed) AddFailures(&record);
    if (record.stage == Stage::kUnderWay || record.stage == Stage::kStopping) AddSeats(&record);
    if (record.stage == Stage::kStopping) {
      record.reason = AnyReason();
    }
    if (record.stage == Stage::kClosed) {
      if (Int(0, 3) == 0) record.settings.reset();
      record.verdict = Verdict{Int(0, 1) == 1, Int(0, 255), Text(), "node", Int(-1, 3)};
      if (Int(0, 1) == 1) record.verdict->failure = AnyFailure();
    }
    return record;
  }

 private:
  int Int(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }
  std::string Text() {
    const std::vector<std::string> samples = {"", "a/b c%", "grüße, 世界 🚀", "7"};
    return samples[Int(0, 3)];
  }
  WorkerFailed AnyFailure() {
    WorkerFailed failed;
    failed.generation = Int(0, 9);
    failed.rank = Int(0, 9);
    failed.status = Int(0, 1) == 0 ? ExitStatus::Exited(Int(0, 255)) : ExitStatus::Signalled(9);
    failed.uptime = std::chrono::milliseconds(Int(0, 1000));
    failed.message = Text();
    failed.evidence.stderr_tail = Text();
    failed.can_restart = Int(0, 1) == 1;
    return failed;
  }
  void AddNodes(JobRecord* record) {
    for (int i = 0; i < Int(0, 3); ++i) {
      NodeRecord node{"node" + std::to_string(i), random_(), Int(-1, 9), Int(0, 1) == 1};
      node.draining = Int(0, 1) == 1;
      node.lost = Int(0, 1) == 1;
      for (int j = Int(0, 2); j > 0; --j) node.retired.push_back(random_());
      record->nodes.push_back(node);
    }
  }
  Reason AnyReason() {
    const ReasonCode code{Int(0, static_cast<int>(kLastReasonCode))};
    return {code, Text(), Int(-9, 9), Int(0, 9), Text()};
  }
  void AddIncidents(JobRecord* record) {
    const auto any_span = [this]() -> std::optional<Duration> {
      if (Int(0, 2) == 0) return std::nullopt;
      return std::chrono::milliseconds(Int(0, 9));
    };
    for (int i = Int(0, 2); i > 0; --i) {
      IncidentRecord incident;
      incident.number = 10 - i;
      incident.generation = Int(0, 9);
      incident.next_generation = Int(0, 9);
      incident.unix_ms = Int(0, 9);
      incident.cause = AnyReason();
      incident.charged = Int(0, 1) == 1;
      incident.outcome = IncidentOutcome(Int(0, 3));
      incident.failed_node = Text();
      incident.failed_rank = Int(-1, 9);
      incident.failed_status = ExitStatus::Exited(Int(0, 255));
      if (Int(0, 1) == 1) incident.failed_status = ExitStatus::Signalled(9, Int(0, 1) == 1);
      incident.out_of_memory = Int(0, 1) == 1;
      incident.kind = IncidentKind(Int(0, 4));
      incident.detect = Int(0, 9) * 1s;
      incident.stop = any_span();
      incident.rendezvous = any_span();
      incident.start = any_span();
      incident.ready = any_span();
      record->incidents.push_back(incident);
    }
  }
  void AddFailures(JobRecord* record) {
    for (int i = 0; i < Int(0, 3); ++i) {
      FailureRecord node{"node" + std::to_string(i), {}};
      for (int j = Int(0, 2); j >= 0; --j) node.before_latest.push_back(j * 1min);
      record->failures.push_back(node);
      if (Int(0, 1) == 1) record->lost.push_back(node.node_id);
    }
  }
  void AddSeats(JobRecord* record) {
    const int seats = Int(1, 4);
    record->world_size = 2 * seats;
    record->master_addr = "fe80::1%eth0";
    record->master_port = Int(0, 65535);
    record->restart_count = Int(0, 9);
    for (int rank = 0; rank < seats; ++rank) {
      const WorkersPhase phases[] = {WorkersPhase::kRunning, WorkersPhase::kStopped,
                                     WorkersPhase::kSucceeded};
      SeatRecord seat{"node" + std::to_string(rank),
                      random_() | 1,
                      2 * rank,
                      rank,
                      2 * seats,
                      phases[Int(0, 2)]};
      if (Int(0, 5) == 0) seat = SeatRecord{Int(0, 1) == 0 ? "" : seat.node_id};
      record->seats.push_back(seat);
    }
    if (Int(0, 1) == 1) record->drain = DrainRecord{Text(), Int(0, 1) == 1, Int(0, 9) * 1s};
    Incident& incident = record->incident;
    if (Int(0, 1) == 1) incident.AddFailure("node0", AnyFailure());
    if (Int(0, 1) == 1) incident.MemberGone();
    if (Int(0, 1) == 1) incident.Planned();
  }

  std::mt19937_64 random_;
};

TEST(StateCodecTest, WhatIsEncodedIsDecodedToTheSame) {
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    const JobRecord record = Generator(seed).Any();
    const absl::StatusOr<JobRecord> again = DecodeJob(EncodeJob(record));
    ASSERT_TRUE(again.ok()) << "seed " << seed << ": " << again.status();
    ASSERT_EQ(*again, record) << "seed " << seed;
  }
}

TEST(StateCodecTest, AKeyNamesTheJobAndItsInstance) {
  EXPECT_EQ(RecordKey("train-7_b.x", 3), "jobs/train-7_b.x/3");
  EXPECT_EQ(RecordKey("a/b c%", 1), "jobs/a%2Fb%20c%25/1");
  EXPECT_EQ(RecordKey("ü", 1), "jobs/%C3%BC/1");
  EXPECT_LE(RecordKey(std::string(255, '/'), UINT64_MAX).size(), kStoreKeyBytesMax);
}

TEST(StateCodecTest, AJobOfTenThousandNodesIsSmallerThanTwoMegabytes) {
  JobRecord record = Generator(1).Any();
  record.stage = Stage::kUnderWay;
  record.verdict.reset();
  record.nodes.clear();
  record.seats.clear();
  record.world_size = 80'000;
  for (int rank = 0; rank < 10'000; ++rank) {
    record.seats.push_back({"rack12-gpu-node" + std::to_string(rank), 0x123456789abcdef0u + rank,
                            8 * rank, 8 * rank, 80'000});
  }
  const std::string bytes = EncodeJob(record);
  std::printf("a job of 10,000 nodes: %zu bytes\n", bytes.size());
  EXPECT_LT(bytes.size(), size_t{2'000'000});
}

// An edit of a good state, and what must be said of it.
struct Damage {
  std::string what;
  std::function<void(v1::KeptJob*)> edit;
};

TEST(StateCodecTest, WhatDoesNotMakeSenseIsRefusedAndNamed) {
  JobRecord record;
  record.job_id = "job";
  record.stage = Stage::kUnderWay;
  record.settings = JobSettings();
  record.generation = 4;
  record.world_size = 4;
  record.seats = {{"a", 1, 0, 0, 4}, {"b", 2, 2, 2, 4}};
  record.nodes = {{"c", 3}, {"d", 4}};
  const std::vector<Damage> damages = {
      {"job_id is empty", [](v1::KeptJob* s) { s->clear_job_id(); }},
      {"stage is 9, which this version does not know",
       [](v1::KeptJob* s) { s->set_stage(static_cast<v1::JobStage>(9)); }},
      {"it has no settings", [](v1::KeptJob* s) { s->clear_settings(); }},
      {"it has no generation", [](v1::KeptJob* s) { s->clear_generation(); }},
      {"seats and stage do not go together",
       [](v1::KeptJob* s) { s->set_stage(v1::JOB_STAGE_FORMING); }},
      {"seats and stage do not go together", [](v1::KeptJob* s) { s->clear_seats(); }},
      {"verdict and stage differ", [](v1::KeptJob* s) { s->mutable_verdict(); }},
      {"too many restarts used", [](v1::KeptJob* s) { s->set_restarts_used(1); }},
      {"node a has two seats", [](v1::KeptJob* s) { s->mutable_seats(1)->set_node_id("a"); }},
      {"rank_base does not grow",
       [](v1::KeptJob* s) {
         s->mutable_seats(1)->set_rank_base(0);
         s->mutable_seats(1)->set_role_rank_base(0);
       }},
      {"rank_base is 4, not from 0 to 3",
       [](v1::KeptJob* s) { s->mutable_seats(1)->set_rank_base(4); }},
      {"seats.phase is 2",
       [](v1::KeptJob* s) { s->mutable_seats(0)->set_phase(v1::WORKERS_PHASE_STOPPING); }},
      {"nodes are not in the order", [](v1::KeptJob* s) { s->mutable_nodes(1)->set_id("c"); }},
      {"drain and stage do not go together",
       [](v1::KeptJob* s) {
         s->clear_seats();
         s->set_stage(v1::JOB_STAGE_FORMING);
         s->mutable_drain();
       }},
      {"a node has failed no time", [](v1::KeptJob* s) { s->add_failures()->set_node_id("a"); }},
      {"failures are out of order",
       [](v1::KeptJob* s) {
         s->add_failures()->set_node_id("a");
         s->mutable_failures(0)->add_before_latest_ns(0);
         s->mutable_failures(0)->add_before_latest_ns(1);
       }},
      {"the numbers of its incidents do not grow",
       [](v1::KeptJob* s) { s->add_incidents()->mutable_cause()->set_label("node_left"); }},
      {"its reason is unknown", [](v1::KeptJob* s) { s->mutable_reason()->set_label("x"); }},
      {"settings: ", [](v1::KeptJob* s) { s->mutable_settings()->set_nodes_min(0); }},
      {"incident: ",
       [](v1::KeptJob* s) {
         s->mutable_incident()->set_failed_node("a");
         s->mutable_incident()->mutable_failure()->set_rank(-1);
       }},
  };
  v1::KeptJob good;
  ASSERT_TRUE(good.ParseFromString(EncodeJob(record)));
  ASSERT_TRUE(DecodeJob(good.SerializeAsString()).ok());
  for (const Damage& damage : damages) {
    v1::KeptJob bad = good;
    damage.edit(&bad);
    const absl::Status status = DecodeJob(bad.SerializeAsString()).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << damage.what << ": " << status;
    EXPECT_NE(status.message().find(damage.what), std::string::npos) << status;
  }
  EXPECT_TRUE(absl::IsDataLoss(DecodeJob("\xff garbage").status()));
  EXPECT_TRUE(absl::IsDataLoss(DecodeJob("").status()));
}

TEST(StateCodecTest, AFieldOfANewerVersionIsRefused) {
  const std::string bytes = EncodeJob(Generator(1).Any()) + "\xfa\x3f\x01x";  // field 1023
  EXPECT_TRUE(absl::IsUnimplemented(DecodeJob(bytes).status()));
}

TEST(StateCodecTest, AStateUnderAnotherKeyIsRefusedByName) {
  JobRecord record = Generator(1).Any();
  record.job_id = "job";
  record.instance = 2;
  const std::string bytes = EncodeJob(record);
  EXPECT_EQ(DecodeState({{"jobs/job/2", bytes}})->jobs.front(), record);
  const absl::Status status = DecodeState({{"jobs/job/1", bytes}}).status();
  EXPECT_EQ(status.message(), "state of jobs/job/1: it is the state of jobs/job/2");
}

TEST(StateCodecTest, WhatIsNoJobOfAMasterIsKeptUnderAKeyOfItsOwn) {
  const std::string bytes = EncodeMaster({7});
  EXPECT_EQ(DecodeState({{"master", bytes}})->master, MasterRecord{7});
  EXPECT_EQ(DecodeState({{"master", ""}})->master, MasterRecord());
  EXPECT_TRUE(absl::IsUnimplemented(DecodeState({{"master", bytes + "\xfa\x3f\x01x"}}).status()));
  EXPECT_EQ(DecodeState({{"master", "\xff"}}).status().message(),
            "state of master: it is not the state of a master");
}

}  // namespace
}  // namespace muster
