#include "rendezvous/grpc_rendezvous.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "proto/rendezvous.grpc.pb.h"
#include "proto/status.grpc.pb.h"
#include "rendezvous/last_will.h"
#include "rendezvous/master_server.h"
#include "rendezvous/message_codec.h"
#include "rendezvous/stream_end_text.h"
#include "tests/rendezvous/test_agent.h"

namespace muster {
namespace {

using namespace std::chrono_literals;

class GrpcRendezvousTest : public testing::Test {
 protected:
  TestAgent Agent(std::optional<bool> is_host = std::nullopt, std::string host = "127.0.0.1") {
    ClusterOptions options;
    options.endpoints = {{std::move(host), port_.number()}};
    options.is_host = is_host;
    options.connect_timeout = 2s;
    options.on_hosting = [this](const std::string& address) { ++hosted_; };
    return TestAgent(std::make_unique<GrpcRendezvous>(&clock_, std::move(options)));
  }

  ClusterOptions Where() const {
    ClusterOptions options;
    options.endpoints = {{"127.0.0.1", port_.number()}};
    return options;
  }

  std::string Endpoint() const { return "127.0.0.1:" + std::to_string(port_.number()); }

  RealClock clock_;
  ReservedPort port_;
  std::atomic<int> hosted_ = 0;
};

TEST_F(GrpcRendezvousTest, TwoAgentsOnOneEndpointFormAGenerationAndTheFirstHostsTheMaster) {
  TestAgent first = Agent();
  TestAgent second = Agent();
  first.Attend(HelloOf("job", "a", 2));
  first.Await<Wait>();
  second.Attend(HelloOf("job", "b", 2));
  const Assignment of_first = first.Await<Assignment>();
  const Assignment of_second = second.Await<Assignment>();
  EXPECT_EQ(hosted_, 1);
  EXPECT_EQ(of_first.generation, of_second.generation);
  EXPECT_EQ(of_first.group_rank, 0);
  EXPECT_EQ(of_second.group_rank, 1);
  EXPECT_EQ(of_second.world_size, 2);
  EXPECT_EQ(of_second.master_addr, "127.0.0.1");
  EXPECT_EQ(of_second.master_port, 20000);
}

TEST_F(GrpcRendezvousTest, TheEndpointMayBeAName) {
  TestAgent first = Agent(std::nullopt, "localhost");
  TestAgent second = Agent(std::nullopt, "localhost");
  first.Attend(HelloOf("job", "a", 2));
  second.Attend(HelloOf("job", "b", 2));
  EXPECT_EQ(first.Await<Assignment>().group_world_size, 2);
  EXPECT_EQ(second.Await<Assignment>().master_addr, "localhost");
  EXPECT_EQ(hosted_, 1);
}

TEST_F(GrpcRendezvousTest, AnAgentThatVanishesIsLostAtOnceAndTheOthersStop) {
  TestAgent first = Agent();
  auto second = std::make_unique<TestAgent>(Agent());
  first.Attend(HelloOf("job", "a", 2));
  first.Await<Wait>();
  second->Attend(HelloOf("job", "b", 2));
  const Assignment assignment = first.Await<Assignment>();
  second->Await<Assignment>();
  second.reset();
  EXPECT_EQ(first.Await<StopWorkers>().generation, assignment.generation);
}

TEST_F(GrpcRendezvousTest, WhenTheMasterDiesAnotherAgentOfTheHostTakesOver) {
  auto first = std::make_unique<TestAgent>(Agent());
  TestAgent second = Agent();
  first->Attend(HelloOf("job", "a", 2));
  first->Await<Wait>();
  second.Attend(HelloOf("job", "b", 2));
  first->Await<Assignment>();
  Hello hello = HelloOf("job", "b", 2);
  hello.running = {WorkersPhase::kRunning, second.Await<Assignment>()};

  first.reset();
  const StreamEnded end = second.Await<StreamEnded>();
  EXPECT_FALSE(end.unreachable);
  EXPECT_EQ(end.detail.rfind(Endpoint() + ": the connection to the master broke", 0), 0u)
      << end.detail;

  second.Attend(hello);
  second.client().Send(Heartbeat{1});
  second.Await<HeartbeatAck>();
  EXPECT_EQ(hosted_, 2);
  TestAgent third = Agent();
  Hello successor = HelloOf("job", "a", 2);
  successor.incarnation += 1;
  third.Attend(successor);
  third.Await<Wait>();
  EXPECT_EQ(hosted_, 2);
}

TEST_F(GrpcRendezvousTest, AnAgentThatMayNotHostOnlyDials) {
  TestAgent agent = Agent(/*is_host=*/false);
  agent.Attend(HelloOf("job", "a", 2));
  const auto event = agent.Next();
  ASSERT_TRUE(event.has_value() && std::holds_alternative<StreamEnded>(*event));
  EXPECT_TRUE(std::get<StreamEnded>(*event).unreachable);
  EXPECT_EQ(std::get<StreamEnded>(*event).detail, Endpoint() + ": connection refused");
  EXPECT_EQ(std::get<StreamEnded>(*event).obstacle, Obstacle::kNone);
  EXPECT_EQ(hosted_, 0);
}

TEST_F(GrpcRendezvousTest, AnUnknownNameIsSaidInOneLine) {
  TestAgent agent = Agent(std::nullopt, "no-such-host.invalid");
  agent.Attend(HelloOf("job", "a", 2));
  const auto event = agent.Next();
  ASSERT_TRUE(event.has_value() && std::holds_alternative<StreamEnded>(*event));
  EXPECT_TRUE(std::get<StreamEnded>(*event).unreachable);
  const std::string detail = std::get<StreamEnded>(*event).detail;
  EXPECT_NE(detail.find("no-such-host.invalid"), std::string::npos) << detail;
  EXPECT_EQ(detail.find('\n'), std::string::npos) << detail;
}

TEST_F(GrpcRendezvousTest, AServiceThatIsNoMasterIsNamedAsSuch) {
  port_.Listen();
  TestAgent agent = Agent();
  agent.Attend(HelloOf("job", "a", 2));
  const UniqueFd accepted(accept4(port_.fd(), nullptr, nullptr, SOCK_CLOEXEC));
  ASSERT_EQ(send(accepted.get(), "220 mail ready\r\n", 16, MSG_NOSIGNAL), 16);
  const StreamEnded end = agent.Await<StreamEnded>();
  EXPECT_TRUE(end.unreachable);
  EXPECT_EQ(end.obstacle, Obstacle::kForeign);
  EXPECT_EQ(end.detail.rfind(Endpoint() + ": what listens there is no master: it says '220 mail " +
                                 "ready' (pid " + std::to_string(getpid()),
                             0),
            0u)
      << end.detail;
  EXPECT_EQ(hosted_, 0);
}

// Ends every stream with one status, once it has read the first message.
class RefusingMaster final : public v1::Rendezvous::Service {
 public:
  RefusingMaster(const std::string& address, grpc::Status status) : status_(std::move(status)) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }

 private:
  grpc::Status Attend(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<v1::MasterMessage, v1::AgentMessage>* stream) override {
    context->AddInitialMetadata(kGreeting, "1");
    v1::AgentMessage hello;
    stream->Read(&hello);
    return status_;
  }

  const grpc::Status status_;
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(GrpcRendezvousTest, AMasterThatRefusesAMessageIsToldFromOneThatIsShortOfSomething) {
  const struct {
    grpc::Status status;
    Obstacle obstacle;
    const char* text;
  } table[] = {
      {{grpc::StatusCode::INVALID_ARGUMENT, "slots is -4"},
       Obstacle::kRefused,
       ": a message was refused (slots is -4)"},
      {{grpc::StatusCode::UNIMPLEMENTED, "kind 77"},
       Obstacle::kRefused,
       ": a message is not known on the other side (kind 77)"},
      {{grpc::StatusCode::RESOURCE_EXHAUSTED, "the agent does not read"},
       Obstacle::kNone,
       ": the stream was given up (the agent does not read)"},
      {{grpc::StatusCode::UNAVAILABLE, "the master stops"},
       Obstacle::kNone,
       ": the connection to the master broke (the master stops)"},
  };
  for (const auto& [status, obstacle, text] : table) {
    const RefusingMaster master(Endpoint(), status);
    TestAgent agent = Agent(/*is_host=*/false);
    agent.Attend(HelloOf("job", "a", 2));
    const StreamEnded end = agent.Await<StreamEnded>();
    EXPECT_EQ(end.detail, Endpoint() + text);
    EXPECT_EQ(end.obstacle, obstacle) << end.detail;
    EXPECT_FALSE(end.unreachable);
  }
}

TEST_F(GrpcRendezvousTest, AMessageThatIsTooLargeForTheMasterIsRefused) {
  MasterServer::Options options;
  options.address = {"127.0.0.1", port_.number()};
  options.limits.message_bytes_max = 1024;
  auto master = MasterServer::Start(&clock_, std::move(options));
  ASSERT_TRUE(master.ok()) << master.status();
  TestAgent agent = Agent(/*is_host=*/false);
  const std::string longest(kIdBytesMax, 'x');
  Hello hello = HelloOf(longest, longest, 2);
  hello.role = hello.topology_key = longest;
  agent.Attend(hello);
  const StreamEnded end = agent.Await<StreamEnded>();
  EXPECT_EQ(end.obstacle, Obstacle::kRefused) << end.detail;
  EXPECT_EQ(end.detail.rfind(Endpoint() + ": a message is larger than the other side takes (", 0),
            0u)
      << end.detail;
}

TEST(ObstacleAfter, AMessageThatIsTooLargeIsRefusedWhetherOrNotTheMasterHadGreeted) {
  const absl::Status status =
      absl::ResourceExhaustedError("Received message larger than max (1157 vs. 1024)");
  EXPECT_EQ(ObstacleAfter(status, /*heard_master=*/true), Obstacle::kRefused);
  EXPECT_EQ(ObstacleAfter(status, /*heard_master=*/false), Obstacle::kRefused);
}

// As a master of another version of the protocol does.
TEST_F(GrpcRendezvousTest, AServerWithoutThisServiceIsNoMaster) {
  grpc::ServerBuilder builder;
  v1::Control::Service other;
  builder.AddListeningPort(Endpoint(), grpc::InsecureServerCredentials());
  builder.RegisterService(&other);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  TestAgent agent = Agent(/*is_host=*/false);
  agent.Attend(HelloOf("job", "a", 2));
  const StreamEnded end = agent.Await<StreamEnded>();
  EXPECT_TRUE(end.unreachable);
  EXPECT_EQ(end.obstacle, Obstacle::kForeign);
  EXPECT_EQ(end.detail.rfind(Endpoint() + ": what listens there is not a muster master", 0), 0u)
      << end.detail;
}

TEST_F(GrpcRendezvousTest, AListenerThatSaysNothingIsToldFromAMasterThatIsNotUp) {
  port_.Listen();
  TestAgent agent = Agent();
  agent.Attend(HelloOf("job", "a", 2));
  EXPECT_EQ(agent.Await<StreamEnded>().obstacle, Obstacle::kSilent);
}

TEST_F(GrpcRendezvousTest, AfterTheVerdictTheHostStaysUntilTheOthersHaveAcknowledged) {
  TestAgent host = Agent();
  TestAgent other = Agent();
  host.Attend(HelloOf("job", "a", 2));
  host.Await<Wait>();
  other.Attend(HelloOf("job", "b", 2));
  const int64_t generation = host.Await<Assignment>().generation;
  other.Await<Assignment>();
  for (TestAgent* agent : {&host, &other}) {
    agent->client().Send(WorkersStarted{generation});
    agent->client().Send(WorkersSucceeded{generation, 20001});
  }
  EXPECT_TRUE(host.Await<Verdict>().succeeded);
  EXPECT_TRUE(other.Await<Verdict>().succeeded);
  host.client().Finish();
  other.client().Send(Heartbeat{7});
  EXPECT_EQ(other.Await<HeartbeatAck>().sequence, 7u);  // the master still serves
  EXPECT_FALSE(host.client().Receive().has_value());
  other.client().Finish();
  other.Await<RendezvousFinished>();
  host.Await<RendezvousFinished>();
}

TEST_F(GrpcRendezvousTest, FinishingWithoutAStreamIsImmediate) {
  TestAgent agent = Agent();
  agent.client().Finish();
  agent.Await<RendezvousFinished>();
}

TEST_F(GrpcRendezvousTest, ALastWillIsTakenNoteOf) {
  TestAgent host = Agent();
  host.Attend(HelloOf("job", "a", 2));
  host.Await<Wait>();
  const LastWill will{"job", "a", 5, 1};
  EXPECT_TRUE(SendLastWill(Where(), will, 20s).ok());
}

TEST_F(GrpcRendezvousTest, ALastWillWithoutAMasterFailsInOneLine) {
  const LastWill will{"job", "a", 5, 1};
  const absl::Status status = SendLastWill(Where(), will, 20s);
  EXPECT_EQ(status.message(), Endpoint() + ": connection refused");
}

TEST_F(GrpcRendezvousTest, OpeningAgainDropsTheOldStreamWithoutAnEvent) {
  TestAgent agent = Agent();
  agent.Attend(HelloOf("job", "a", 2));
  agent.Await<Wait>();
  agent.Attend(HelloOf("job", "a", 2));
  agent.Await<Wait>();
  agent.client().Send(Heartbeat{3});
  EXPECT_EQ(agent.Await<HeartbeatAck>().sequence, 3u);
}

TEST_F(GrpcRendezvousTest, SixtyFourAgentsFormOneGeneration) {
  constexpr int kAgents = 64;
  std::vector<TestAgent> agents;
  for (int i = 0; i < kAgents; ++i) {
    agents.push_back(Agent(/*is_host=*/i == 0));
    agents.back().Attend(HelloOf("job", "node" + std::to_string(i), kAgents));
    if (i + 1 < kAgents) agents.back().Await<Wait>();
  }
  std::vector<bool> seen(kAgents, false);
  for (TestAgent& agent : agents) {
    const Assignment assignment = agent.Await<Assignment>();
    EXPECT_EQ(assignment.group_world_size, kAgents);
    ASSERT_LT(assignment.group_rank, kAgents);
    EXPECT_FALSE(seen[assignment.group_rank]);
    seen[assignment.group_rank] = true;
  }
}

}  // namespace
}  // namespace muster
