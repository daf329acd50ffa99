#include "rendezvous/master_server.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "proto/rendezvous.grpc.pb.h"
#include "rendezvous/message_codec.h"
#include "tests/fakes/fake_clock.h"
#include "tests/rendezvous/test_agent.h"

namespace muster {
namespace {

using namespace std::chrono_literals;

// One stream that says whatever a test wants it to say, with gRPC's blocking calls.
class RawAgent {
 public:
  explicit RawAgent(const std::string& target)
      : stub_(v1::Rendezvous::NewStub(
            grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), SmallWindow()))) {
    context_.set_deadline(std::chrono::system_clock::now() + 20s);
    stream_ = stub_->Attend(&context_);
  }

  bool Say(const v1::AgentMessage& message) { return stream_->Write(message); }
  bool Say(const AgentMessage& message) { return Say(Encode(message)); }
  void HalfClose() { stream_->WritesDone(); }

  // The next message of this kind; an empty one when the stream ends before.
  v1::MasterMessage Await(v1::MasterMessage::KindCase kind) {
    v1::MasterMessage message;
    while (stream_->Read(&message)) {
      if (message.kind_case() == kind) return message;
    }
    return {};
  }
  grpc::Status End() {
    v1::MasterMessage message;
    while (stream_->Read(&message)) {
    }
    return stream_->Finish();
  }

 private:
  // Else what an agent does not read may be megabytes.
  static grpc::ChannelArguments SmallWindow() {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    return arguments;
  }

  const std::unique_ptr<v1::Rendezvous::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::AgentMessage, v1::MasterMessage>> stream_;
};

class MasterServerTest : public testing::Test {
 protected:
  static absl::StatusOr<std::unique_ptr<MasterServer>> StartOn(Clock* clock,
                                                               const HostPort& address) {
    MasterServer::Options options;
    options.security.insecure = true;
    options.address = address;
    options.loop.registry.on_violation = [](const std::string& what) { ADD_FAILURE() << what; };
    return MasterServer::Start(clock, std::move(options));
  }

  std::string Start(const std::string& address = "127.0.0.1") {
    auto server = StartOn(&clock_, {address, 0});
    EXPECT_TRUE(server.ok()) << server.status();
    if (!server.ok()) return "";
    server_ = *std::move(server);
    return ToString({address, server_->port()});
  }

  FakeClock clock_;
  std::unique_ptr<MasterServer> server_;
};

TEST_F(MasterServerTest, AnUnknownKindOfMessageIsAnsweredUnimplemented) {
  RawAgent agent(Start());
  ASSERT_TRUE(agent.Say(HelloOf("job", "a", 2)));
  v1::AgentMessage newer;
  newer.GetReflection()->MutableUnknownFields(&newer)->AddLengthDelimited(77, "x");
  agent.Say(newer);
  const grpc::Status status = agent.End();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_NE(status.error_message().find("77"), std::string::npos) << status.error_message();
}

TEST_F(MasterServerTest, WhatCannotBeMeantIsInvalidArgument) {
  Hello hello = HelloOf("job", "a", 2);
  hello.slots = -4;
  RawAgent agent(Start());
  agent.Say(hello);
  const grpc::Status status = agent.End();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(status.error_message().find("slots is -4"), std::string::npos)
      << status.error_message();
}

TEST_F(MasterServerTest, AStreamBeginsWithExactlyOneHello) {
  const std::string target = Start();
  RawAgent silent(target);
  silent.Say(Heartbeat{1});
  EXPECT_EQ(silent.End().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  RawAgent twice(target);
  twice.Say(HelloOf("job", "a", 2));
  twice.Say(HelloOf("job", "b", 2));
  EXPECT_EQ(twice.End().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(MasterServerTest, AMessageOverTheLimitIsRefused) {
  RawAgent agent(Start());
  v1::AgentMessage large = Encode(AgentMessage(HelloOf("job", "a", 2)));
  large.mutable_hello()->set_topology_key(std::string(kWireBytesMax, 'x'));
  agent.Say(large);
  EXPECT_EQ(agent.End().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(MasterServerTest, AnAgentThatNeverReadsIsLetGo) {
  RawAgent agent(Start());
  agent.Say(HelloOf("job", "a", 2));
  uint64_t beat = 0;
  while (agent.Say(Heartbeat{++beat})) {
  }
  const grpc::Status status = agent.End();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::CANCELLED) << status.error_message();
}

TEST_F(MasterServerTest, SettingsThatDifferAreRejectedByTheJobAndTheStreamEndsWell) {
  const std::string target = Start();
  RawAgent first(target);
  first.Say(HelloOf("job", "a", 2));
  first.Await(v1::MasterMessage::kWait);
  Hello hello = HelloOf("job", "b", 2);
  hello.settings.max_restarts = 9;
  RawAgent second(target);
  second.Say(hello);
  EXPECT_EQ(second.Await(v1::MasterMessage::kRejected).rejected().exit_code(), 78);
  EXPECT_TRUE(second.End().ok());
}

TEST_F(MasterServerTest, AnAgentThatStaysConnectedButSilentIsLostWhenItsLeaseIsOver) {
  const std::string target = Start();
  RawAgent alive(target);
  RawAgent frozen(target);
  alive.Say(HelloOf("job", "a", 2));
  alive.Await(v1::MasterMessage::kWait);
  frozen.Say(HelloOf("job", "b", 2));
  const auto assignment = alive.Await(v1::MasterMessage::kAssignment).assignment();
  EXPECT_EQ(frozen.Await(v1::MasterMessage::kAssignment).assignment().group_rank(), 1);
  for (uint64_t beat = 1; beat <= 2; ++beat) {
    clock_.Advance(5s);
    alive.Say(Heartbeat{beat});
    EXPECT_EQ(alive.Await(v1::MasterMessage::kHeartbeatAck).heartbeat_ack().sequence(), beat);
  }
  clock_.Advance(5s);
  clock_.Advance(100ms);  // the master listens so long before it judges
  EXPECT_EQ(alive.Await(v1::MasterMessage::kStopWorkers).stop_workers().generation(),
            assignment.generation());
  EXPECT_TRUE(frozen.End().ok());
}

TEST_F(MasterServerTest, ALastWillFreesTheOthersFromWaiting) {
  const std::string target = Start();
  RawAgent survivor(target);
  RawAgent dead(target);
  survivor.Say(HelloOf("job", "a", 2));
  survivor.Await(v1::MasterMessage::kWait);
  const Hello hello = HelloOf("job", "b", 2);
  dead.Say(hello);
  const int64_t generation =
      survivor.Await(v1::MasterMessage::kAssignment).assignment().generation();
  RawAgent warden(target);
  warden.Say(LastWill{"job", "b", hello.incarnation, generation});
  warden.HalfClose();
  EXPECT_TRUE(warden.End().ok());
  EXPECT_EQ(survivor.Await(v1::MasterMessage::kStopWorkers).stop_workers().generation(),
            generation);
}

TEST_F(MasterServerTest, EndingTheMasterEndsItsStreams) {
  RawAgent agent(Start());
  agent.Say(HelloOf("job", "a", 2));
  agent.Await(v1::MasterMessage::kWait);
  server_.reset();
  EXPECT_EQ(agent.End().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(MasterServerTest, ASecondMasterOnThePortIsToldThatItIsInUse) {
  Start();
  const int port = server_->port();
  for (const char* address : {"127.0.0.1", "0.0.0.0", "::"}) {
    const absl::Status status = StartOn(&clock_, {address, port}).status();
    EXPECT_TRUE(absl::IsAlreadyExists(status)) << status;
    EXPECT_NE(std::string(status.message()).find("in use"), std::string::npos) << status;
  }
}

TEST_F(MasterServerTest, AnAddressOfAnotherHostIsNotFound) {
  const absl::Status status = StartOn(&clock_, {"192.0.2.1", 0}).status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_TRUE(absl::IsNotFound(StartOn(&clock_, {"node07", 0}).status()));
}

TEST_F(MasterServerTest, APortThatWasJustFreedCanBeTakenAgain) {
  for (int i = 0; i < 3; ++i) {
    const HostPort address{"127.0.0.1", server_ == nullptr ? 0 : server_->port()};
    if (server_ != nullptr) {
      RawAgent agent(ToString(address));
      agent.Say(HelloOf("job", "a", 2));
      agent.Await(v1::MasterMessage::kWait);
      server_.reset();
      agent.End();
    }
    auto server = StartOn(&clock_, address);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
}

TEST_F(MasterServerTest, ServesIpv6) {
  auto server = StartOn(&clock_, {"::1", 0});
  if (absl::IsNotFound(server.status())) GTEST_SKIP() << "this host has no IPv6";
  ASSERT_TRUE(server.ok()) << server.status();
  RawAgent agent(ToString({"::1", (*server)->port()}));
  agent.Say(HelloOf("job", "a", 1));
  // Its own dialled_host is empty, so the address is where the stream comes from.
  EXPECT_EQ(agent.Await(v1::MasterMessage::kAssignment).assignment().group_world_size(), 1);
}

}  // namespace
}  // namespace muster
