#include "rendezvous/message_codec.h"

#include <google/protobuf/unknown_field_set.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <string>
#include <vector>

namespace muster {
namespace {

using namespace std::chrono_literals;

// Random messages of every kind with values that can be meant.
class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  AgentMessage Agent(size_t kind) {
    switch (kind) {
      case 0:
        return AnyHello();
      case 1:
        return AnyHeartbeat();
      case 2:
        return WorkersStarted{Number(0, INT64_MAX - 1)};
      case 3:
        return WorkersReady{Number(0, 9)};
      case 4:
        return WorkersStopped{Number(0, 9), Int(0, 65535), Int(0, 1) == 1};
      case 5:
        return AnyFailure();
      case 6:
        return WorkersSucceeded{Number(0, 9), Int(0, 65535), Int(0, 1) == 1};
      case 7:
        return Leaving{Number(0, 9), static_cast<LeaveCause>(Int(0, 2)), Text()};
      case 8:
        return LastWill{Id(), Id(), random_(), Number(0, 9)};
      default:
        return CommitPoint{Number(0, 9)};
    }
  }

  MasterMessage Master(size_t kind) {
    switch (kind) {
      case 0:
        return HeartbeatAck{random_()};
      case 1:
        return AnyAssignment();
      case 2:
        return StopWorkers{Number(0, 9), Text()};
      case 3:
        return Wait{Text(), Span()};
      case 4:
        return Drain{Number(0, 9), Text()};
      case 5:
        return AnyVerdict();
      case 6:
        return Rejected{Int(0, 255), Text()};
      default:
        return Drained{Text()};
    }
  }

 private:
  int64_t Number(int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random_);
  }
  int Int(int least, int most) { return static_cast<int>(Number(least, most)); }
  Duration Span() { return Duration(Number(0, 86'400'000'000'000)); }
  std::string Text() {
    const std::vector<std::string> samples = {"", "SIGTERM from pid 812", "grüße, 世界 🚀", "a\nb"};
    return samples[Number(0, 3)];
  }
  std::string Id() { return "job-" + std::to_string(Number(0, 1000)); }

  Heartbeat AnyHeartbeat() {
    Heartbeat heartbeat{random_()};
    if (Int(0, 1) == 1) {
      heartbeat.progress = Progress{Number(0, 9), Number(0, INT64_MAX), Span()};
    }
    return heartbeat;
  }

  Assignment AnyAssignment() {
    Assignment a;
    a.instance = random_();
    a.generation = Number(0, 1000);
    a.group_world_size = Int(1, 100);
    a.group_rank = Int(0, a.group_world_size - 1);
    a.world_size = Int(1, 1000);
    a.rank_base = Int(0, a.world_size - 1);
    a.role_world_size = Int(1, a.world_size);
    a.role_rank_base = Int(0, a.role_world_size - 1);
    a.master_addr = "fe80::1%eth0";
    a.master_port = Int(0, 65535);
    a.restart_count = Int(0, 10);
    for (int i = Int(0, 3); i > 0; --i) a.members.push_back(Id());
    return a;
  }

  Hello AnyHello() {
    Hello hello;
    hello.job_id = Id();
    hello.settings.nodes_min = Int(1, 10);
    hello.settings.nodes_max = Int(10, 20);
    hello.settings.max_restarts = Int(0, 100);
    hello.settings.last_call = Span();
    hello.settings.fencing = static_cast<Fencing>(Int(0, 1));
    hello.settings.join_policy = static_cast<JoinPolicy>(Int(0, 2));
    hello.settings.max_start_failures = Int(0, 100);
    for (int i = Int(0, 3); i > 0; --i) hello.settings.fatal_exit_codes.Add(Int(1, 255));
    hello.settings.stall_timeout = Span();
    hello.settings.max_restart_delay = Span();
    hello.settings.node_unit = Int(1, 9);
    hello.settings.max_node_failures = Int(0, 9);
    hello.settings.node_failure_window = Span();
    hello.node_id = Id();
    hello.incarnation = random_();
    hello.attempt = random_();
    hello.slots = Int(1, 65536);
    hello.role = Text();
    hello.fixed_group_rank = Int(-1, 3);
    hello.local_addr = Text();
    for (int i = Int(0, 3); i > 0; --i) hello.own_addresses.push_back("10.0.0.7");
    hello.dialled_host = "node07";
    hello.next_port = Int(0, 65535);
    hello.fixed_master_addr = Text();
    hello.fixed_master_port = Int(0, 65535);
    hello.topology_key = Text();
    hello.running.phase = static_cast<WorkersPhase>(Int(0, 4));
    if (hello.running.phase != WorkersPhase::kNone) {
      hello.running.assignment = AnyAssignment();
      if (Int(0, 1) == 1) hello.running.failure = AnyFailure();
      hello.running.drained = Int(0, 1) == 1;
      hello.running.fenced = Int(0, 1) == 1;
    }
    hello.attached_before = Int(0, 1) == 1;
    return hello;
  }

  WorkerFailed AnyFailure() {
    WorkerFailed failed;
    failed.generation = Number(0, 9);
    failed.local_rank = Int(0, 7);
    failed.rank = Int(0, 70);
    failed.pid = Int(1, 1 << 22);
    failed.status = Int(0, 1) == 0 ? ExitStatus::Exited(Int(1, 255))
                                   : ExitStatus::Signalled(Int(1, 64), Int(0, 1) == 1);
    failed.uptime = Span();
    failed.was_ready = Int(0, 1) == 1;
    failed.message = Text();
    failed.can_restart = Int(0, 1) == 1;
    if (Int(0, 2) > 0) {
      failed.evidence = {Text(), Number(0, 1LL << 42), Text(), Text(), Int(0, 1) == 1, Text(),
                         Text()};
    }
    return failed;
  }

  Verdict AnyVerdict() {
    Verdict verdict{Int(0, 1) == 1, Int(0, 255), Text(), Text(), Int(-1, 9)};
    if (Int(0, 1) == 1) verdict.failure = AnyFailure();
    return verdict;
  }

  std::mt19937_64 random_;
};

template <typename Wire, typename Message>
Wire OverTheWire(const Message& message) {
  Wire received;
  EXPECT_TRUE(received.ParseFromString(Encode(message).SerializeAsString()));
  return received;
}

TEST(MessageCodecTest, EveryMessageOfAnAgentArrivesAsItWasSent) {
  Generator any(1);
  for (size_t i = 0; i < 300 * std::variant_size_v<AgentMessage>; ++i) {
    const AgentMessage sent = any.Agent(i % std::variant_size_v<AgentMessage>);
    ASSERT_EQ(sent.index(), i % std::variant_size_v<AgentMessage>);
    const absl::StatusOr<AgentMessage> received = Decode(OverTheWire<v1::AgentMessage>(sent));
    ASSERT_TRUE(received.ok()) << received.status();
    ASSERT_TRUE(*received == sent) << Encode(sent).DebugString();
  }
}

TEST(MessageCodecTest, EveryMessageOfAMasterArrivesAsItWasSent) {
  Generator any(2);
  for (size_t i = 0; i < 300 * std::variant_size_v<MasterMessage>; ++i) {
    const MasterMessage sent = any.Master(i % std::variant_size_v<MasterMessage>);
    ASSERT_EQ(sent.index(), i % std::variant_size_v<MasterMessage>);
    const absl::StatusOr<MasterMessage> received = Decode(OverTheWire<v1::MasterMessage>(sent));
    ASSERT_TRUE(received.ok()) << received.status();
    ASSERT_TRUE(*received == sent) << Encode(sent).DebugString();
  }
}

TEST(MessageCodecTest, AnUnknownKindOfMessageIsUnimplemented) {
  v1::AgentMessage wire;
  wire.GetReflection()->MutableUnknownFields(&wire)->AddLengthDelimited(99, "");
  const absl::Status status = Decode(wire).status();
  EXPECT_TRUE(absl::IsUnimplemented(status));
  EXPECT_NE(std::string(status.message()).find("99"), std::string::npos) << status;
  EXPECT_TRUE(absl::IsInvalidArgument(Decode(v1::AgentMessage()).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Decode(v1::MasterMessage()).status()));
}

TEST(MessageCodecTest, WhatCannotBeMeantIsRefusedWithTheFieldAndTheValue) {
  struct Row {
    std::string expected;
    std::function<void(v1::Hello*)> spoil;
  };
  const Row table[] = {
      {"job_id is empty", [](v1::Hello* h) { h->clear_job_id(); }},
      {"job_id has 256 bytes", [](v1::Hello* h) { h->set_job_id(std::string(256, 'x')); }},
      {"job_id has control", [](v1::Hello* h) { h->set_job_id("a\nb"); }},
      {"node_id is empty", [](v1::Hello* h) { h->clear_node_id(); }},
      {"slots is -1", [](v1::Hello* h) { h->set_slots(-1); }},
      {"slots is 0", [](v1::Hello* h) { h->set_slots(0); }},
      {"next_port is 65536", [](v1::Hello* h) { h->set_next_port(65536); }},
      {"next_port is -1", [](v1::Hello* h) { h->set_next_port(-1); }},
      {"fixed_group_rank is -2", [](v1::Hello* h) { h->set_fixed_group_rank(-2); }},
      {"own_addresses is 65",
       [](v1::Hello* h) {
         while (h->own_addresses_size() < 65) h->add_own_addresses("10.0.0.7");
       }},
      {"settings.nodes_min is 0", [](v1::Hello* h) { h->mutable_settings()->set_nodes_min(0); }},
      {"settings.join_timeout is -1",
       [](v1::Hello* h) { h->mutable_settings()->set_join_timeout_ns(-1); }},
      {"not from 0 to 366 days",
       [](v1::Hello* h) { h->mutable_settings()->set_last_call_ns(INT64_MAX); }},
      {"settings.fencing is 7",
       [](v1::Hello* h) { h->mutable_settings()->set_fencing(static_cast<v1::Fencing>(7)); }},
      {"running.phase is 9",
       [](v1::Hello* h) { h->mutable_running()->set_phase(static_cast<v1::WorkersPhase>(9)); }},
      {"group_world_size is 0",
       [](v1::Hello* h) { h->mutable_running()->set_phase(v1::WORKERS_PHASE_RUNNING); }},
  };
  for (const Row& row : table) {
    Hello hello;
    hello.job_id = "job";
    hello.node_id = "node";
    v1::AgentMessage wire = Encode(AgentMessage(hello));
    ASSERT_TRUE(Decode(wire).ok()) << Decode(wire).status();
    row.spoil(wire.mutable_hello());
    const absl::Status status = Decode(wire).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << row.expected;
    EXPECT_NE(std::string(status.message()).find(row.expected), std::string::npos) << status;
  }
}

TEST(MessageCodecTest, NegativeGenerationsAndWildNumbersAreRefused) {
  v1::AgentMessage wire;
  wire.mutable_workers_started()->set_generation(-1);
  EXPECT_TRUE(absl::IsInvalidArgument(Decode(wire).status()));
  wire.mutable_workers_stopped()->set_generation(INT64_MIN);
  EXPECT_TRUE(absl::IsInvalidArgument(Decode(wire).status()));
  wire.mutable_worker_failed()->set_signal(4000);
  EXPECT_TRUE(absl::IsInvalidArgument(Decode(wire).status()));
  v1::MasterMessage master;
  master.mutable_wait()->set_at_most_ns(-5);
  EXPECT_TRUE(absl::IsInvalidArgument(Decode(master).status()));
}

TEST(MessageCodecTest, WhatAWorkerSaysIsCutToItsLimitAndMadeUtf8) {
  WorkerFailed failed;
  failed.message = "bad \xff byte, cut \xe4\xb8";
  const auto repaired = Decode(OverTheWire<v1::AgentMessage>(AgentMessage(failed)));
  ASSERT_TRUE(repaired.ok());
  EXPECT_EQ(std::get<WorkerFailed>(*repaired).message, "bad ? byte, cut ??");

  failed.message.clear();
  while (failed.message.size() < kTextBytesMax + 10) failed.message += "世";
  const auto cut = Decode(OverTheWire<v1::AgentMessage>(AgentMessage(failed)));
  ASSERT_TRUE(cut.ok());
  EXPECT_EQ(std::get<WorkerFailed>(*cut).message, failed.message.substr(0, kTextBytesMax / 3 * 3));
}

}  // namespace
}  // namespace muster
