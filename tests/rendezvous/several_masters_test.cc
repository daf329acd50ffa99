#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "rendezvous/control_client.h"
#include "rendezvous/etcd_election.h"
#include "rendezvous/grpc_rendezvous.h"
#include "rendezvous/last_will.h"
#include "rendezvous/master_server.h"
#include "rendezvous/round_limits.h"
#include "rendezvous/standby_server.h"
#include "tests/rendezvous/test_agent.h"
#include "tests/rendezvous/test_etcd.h"

namespace muster {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

std::unique_ptr<StandbyServer> Standby(const std::string& leader) {
  auto standby = *StandbyServer::Start({"127.0.0.1", 0}, {});
  standby->SetLeader(leader);
  return standby;
}

class SeveralEndpointsTest : public testing::Test {
 protected:
  std::unique_ptr<MasterServer> Master() {
    MasterServer::Options options;
    options.address = {"127.0.0.1", 0};
    return *MasterServer::Start(&clock_, std::move(options));
  }

  static ClusterOptions Endpoints(const std::vector<int>& ports) {
    ClusterOptions options;
    for (const int port : ports) options.endpoints.push_back({"127.0.0.1", port});
    return options;
  }

  RealClock clock_;
  ReservedPort nobody_;
};

TEST_F(SeveralEndpointsTest, WhoIsAwayOrStandsByIsPassedOverAndTheLeaderHearsTheHello) {
  const auto standby = Standby("127.0.0.1:1");
  const auto master = Master();
  const ClusterOptions where = Endpoints({nobody_.number(), standby->port(), master->port()});
  TestAgent first(std::make_unique<GrpcRendezvous>(&clock_, where));
  TestAgent second(std::make_unique<GrpcRendezvous>(&clock_, where));
  first.Attend(HelloOf("job", "a", 2));
  first.Await<Wait>();
  second.Attend(HelloOf("job", "b", 2));
  EXPECT_EQ(first.Await<Assignment>().group_rank, 0);
  EXPECT_EQ(second.Await<Assignment>().group_rank, 1);
}

TEST_F(SeveralEndpointsTest, WhereNobodyLeadsAllAreNamedInOneLine) {
  const auto standby = Standby("10.0.0.1:29400");
  TestAgent agent(
      std::make_unique<GrpcRendezvous>(&clock_, Endpoints({nobody_.number(), standby->port()})));
  agent.Attend(HelloOf("job", "a", 2));
  const StreamEnded end = agent.Await<StreamEnded>();
  EXPECT_TRUE(end.unreachable);
  EXPECT_THAT(end.detail, HasSubstr("the master is at 10.0.0.1:29400"));
  EXPECT_THAT(end.detail, HasSubstr(std::to_string(nobody_.number()) + ": connection refused"));
  EXPECT_EQ(end.detail.find('\n'), std::string::npos);
}

// Answers one connection as a server of TLS does that is spoken to in the clear.
void AnswerAsTls(const ReservedPort& port) {
  const UniqueFd accepted(accept4(port.fd(), nullptr, nullptr, SOCK_CLOEXEC));
  ASSERT_EQ(send(accepted.get(), "\x15\3\3\0\2\2\x46", 7, MSG_NOSIGNAL), 7);
}

TEST_F(SeveralEndpointsTest, WhereAllSpeakTlsANodeThatDoesNotIsTurnedAwayInOneLine) {
  ReservedPort one;
  ReservedPort other;
  one.Listen();
  other.Listen();
  TestAgent agent(
      std::make_unique<GrpcRendezvous>(&clock_, Endpoints({one.number(), other.number()})));
  agent.Attend(HelloOf("job", "a", 2));
  AnswerAsTls(one);
  AnswerAsTls(other);
  const auto refused = agent.Await<Rejected>();
  EXPECT_EQ(refused.exit_code, kExitBadSettings);
  for (const ReservedPort* port : {&one, &other}) {
    EXPECT_THAT(refused.reason, HasSubstr("127.0.0.1:" + std::to_string(port->number()) +
                                          ": what listens there speaks TLS: give --tls-ca"));
  }
  EXPECT_EQ(refused.reason.find('\n'), std::string::npos);
}

TEST_F(SeveralEndpointsTest, WhereOneThatMayNotSpeakTlsIsAwayItIsWaitedFor) {
  ReservedPort tls;
  tls.Listen();
  TestAgent agent(
      std::make_unique<GrpcRendezvous>(&clock_, Endpoints({tls.number(), nobody_.number()})));
  agent.Attend(HelloOf("job", "a", 2));
  AnswerAsTls(tls);
  const auto event = agent.Next();
  ASSERT_TRUE(event.has_value() && std::holds_alternative<StreamEnded>(*event));
  EXPECT_TRUE(std::get<StreamEnded>(*event).unreachable);
  EXPECT_EQ(std::get<StreamEnded>(*event).obstacle, Obstacle::kNone);
}

TEST_F(SeveralEndpointsTest, WhenTheLeaderDiesTheAgentFindsTheNext) {
  auto first = Master();
  const auto second = Master();
  TestAgent agent(
      std::make_unique<GrpcRendezvous>(&clock_, Endpoints({first->port(), second->port()})));
  agent.Attend(HelloOf("job", "a", 2));
  agent.Await<Wait>();
  first.reset();
  EXPECT_FALSE(agent.Await<StreamEnded>().unreachable);
  agent.Attend(HelloOf("job", "a", 2));
  agent.Await<Wait>();
}

TEST_F(SeveralEndpointsTest, ALastWillReachesTheLeader) {
  const auto standby = Standby("127.0.0.1:1");
  const auto master = Master();
  const LastWill will{"job", "a", 5, 1};
  EXPECT_TRUE(SendLastWill(Endpoints({standby->port(), master->port()}), will, 20s).ok());
  EXPECT_FALSE(SendLastWill(Endpoints({standby->port()}), will, 20s).ok());
}

TEST(StandbyTest, WhoMayNotTakePartIsNotToldWhereTheMasterIs) {
  const std::string file = testing::TempDir() + "/token";
  std::ofstream(file) << "0123456789abcdef-right";
  auto standby = *StandbyServer::Start({"127.0.0.1", 0}, {.token_file = file});
  standby->SetLeader("10.0.0.1:29400");
  const HostPort where{"127.0.0.1", standby->port()};
  const auto answer_to = [&](const ClientSecurity& security) {
    return ControlClient::Connect(where, security, 20s).value()->GetStatus({}).status();
  };
  EXPECT_THAT(std::string(answer_to({.token_file = file}).message()), HasSubstr("10.0.0.1:29400"));
  const absl::Status refused = answer_to({});
  EXPECT_THAT(std::string(refused.message()), HasSubstr("this master wants a token"));
  EXPECT_THAT(std::string(refused.message()), Not(HasSubstr("10.0.0.1")));
}

class ElectedMasterTest : public testing::Test {
 protected:
  static constexpr char kPrefix[] = "/muster/jobs/job";

  ClusterOptions Where() const {
    ClusterOptions options;
    options.election = EtcdElectionOptions{.etcd = etcd_.options(), .prefix = kPrefix, .lease = 2s};
    return options;
  }

  // An agent that counts in `hosted` how often it became the master.
  std::unique_ptr<TestAgent> Agent(std::atomic<int>* hosted) {
    ClusterOptions options = Where();
    options.on_hosting = [hosted](const std::string&) { ++*hosted; };
    return std::make_unique<TestAgent>(std::make_unique<GrpcRendezvous>(&clock_, options));
  }

  RealClock clock_;
  TestEtcd etcd_{1};
};

TEST_F(ElectedMasterTest, TheAgentsElectOneMasterAndFormAGeneration) {
  std::atomic<int> hosted = 0;
  const auto first = Agent(&hosted);
  const auto second = Agent(&hosted);
  first->Attend(HelloOf("job", "a", 2));
  second->Attend(HelloOf("job", "b", 2));
  EXPECT_EQ(first->Await<Assignment>().group_rank, 0);
  EXPECT_EQ(second->Await<Assignment>().group_rank, 1);
  EXPECT_EQ(hosted, 1);
}

TEST_F(ElectedMasterTest, WhenTheMastersAgentEndsAnotherOneIsMasterAndKnowsTheGeneration) {
  std::atomic<int> hosted = 0;
  std::atomic<int> hosted_later = 0;
  auto first = Agent(&hosted);
  first->Attend(HelloOf("job", "a", 2));
  first->Await<Wait>();
  const auto second = Agent(&hosted_later);
  second->Attend(HelloOf("job", "b", 2));
  Hello again = HelloOf("job", "b", 2);
  again.running = {WorkersPhase::kRunning, second->Await<Assignment>()};

  first.reset();
  second->Await<StreamEnded>();
  second->Attend(again);
  second->client().Send(Heartbeat{1});
  second->Await<HeartbeatAck>();
  EXPECT_EQ(hosted_later, 1);
}

TEST_F(ElectedMasterTest, AnAgentWhoseMasterIsDeposedAttendsTheNextOne) {
  std::atomic<int> hosted = 0;
  const auto first = Agent(&hosted);
  const auto second = Agent(&hosted);
  first->Attend(HelloOf("job", "a", 3));
  first->Await<Wait>();
  second->Attend(HelloOf("job", "b", 3));
  second->Await<Wait>();
  etcd_.Control({"del", EtcdLeaderKey(kPrefix)});
  for (TestAgent* agent : {first.get(), second.get()}) {
    agent->Await<StreamEnded>();
    agent->Attend(HelloOf("job", agent == first.get() ? "a" : "b", 3));
    agent->Await<Wait>();
  }
  EXPECT_EQ(hosted, 2);
}

TEST_F(ElectedMasterTest, WhoHasFinishedStaysWhileOthersNeedItsMaster) {
  std::atomic<int> hosted = 0;
  const auto host = Agent(&hosted);
  host->Attend(HelloOf("job", "a", 2));
  host->Await<Wait>();
  const auto other = Agent(&hosted);
  other->Attend(HelloOf("job", "b", 2));
  const int64_t generation = host->Await<Assignment>().generation;
  other->Await<Assignment>();
  for (const auto& agent : {host.get(), other.get()}) {
    agent->client().Send(WorkersStarted{generation});
    agent->client().Send(WorkersSucceeded{generation, 20001});
  }
  EXPECT_TRUE(host->Await<Verdict>().succeeded);
  EXPECT_TRUE(other->Await<Verdict>().succeeded);
  host->client().Finish();
  other->client().Send(Heartbeat{7});
  EXPECT_EQ(other->Await<HeartbeatAck>().sequence, 7u);
  other->client().Finish();
  other->Await<RendezvousFinished>();
  host->Await<RendezvousFinished>();
}

TEST_F(ElectedMasterTest, ALastWillWaitsForTheNextMaster) {
  std::atomic<int> hosted = 0;
  // A leader that vanished: its key stays until its lease runs out.
  etcd_.Control({"put", EtcdLeaderKey(kPrefix), "127.0.0.1:1"});
  const auto agent = Agent(&hosted);
  agent->Attend(HelloOf("job", "a", 2));
  absl::Status sent = absl::UnknownError("");
  std::thread warden([&] { sent = SendLastWill(Where(), LastWill{"job", "b", 5, 1}, 20s); });
  etcd_.Control({"del", EtcdLeaderKey(kPrefix)});
  agent->Await<Wait>();
  warden.join();
  EXPECT_TRUE(sent.ok()) << sent;
}

TEST_F(ElectedMasterTest, WithoutEtcdThatIsSaidInOneLine) {
  etcd_.Kill(0);
  std::atomic<int> hosted = 0;
  const auto agent = Agent(&hosted);
  agent->Attend(HelloOf("job", "a", 2));
  const StreamEnded end = agent->Await<StreamEnded>();
  EXPECT_TRUE(end.unreachable);
  EXPECT_THAT(end.detail, HasSubstr("etcd at 127.0.0.1:"));
  EXPECT_EQ(end.detail.find('\n'), std::string::npos) << end.detail;
}

}  // namespace
}  // namespace muster
