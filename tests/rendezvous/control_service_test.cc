// The service Control of a real master over gRPC, asked by the client that `muster status` uses.
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "rendezvous/cluster.h"
#include "rendezvous/control_client.h"
#include "rendezvous/master_server.h"
#include "rendezvous/standby_server.h"
#include "tests/rendezvous/test_agent.h"

namespace muster {
namespace {

using namespace std::chrono_literals;

class ControlServiceTest : public testing::Test {
 protected:
  ControlServiceTest() {
    MasterServer::Options options;
    options.address = {"127.0.0.1", 0};
    server_ = MasterServer::Start(&clock_, std::move(options)).value();
    endpoint_ = {"127.0.0.1", server_->port()};
    client_ = ControlClient::Connect(endpoint_, {}, 20s).value();
  }

  std::unique_ptr<TestAgent> Attend(const std::string& job_id, const std::string& node_id,
                                    int nodes) {
    ClusterOptions options;
    options.endpoints = {endpoint_};
    options.is_host = false;
    auto agent = std::make_unique<TestAgent>(MakeClusterRendezvous(options));
    agent->Attend(HelloOf(job_id, node_id, nodes));
    return agent;
  }
  static v1::StatusRequest Of(const std::string& job_id) {
    v1::StatusRequest request;
    request.set_job_id(job_id);
    return request;
  }
  static v1::StopJobRequest StopOf(const std::string& job_id) {
    v1::StopJobRequest request;
    request.set_job_id(job_id);
    request.set_who("anna");
    return request;
  }

  RealClock clock_;
  std::unique_ptr<MasterServer> server_;
  HostPort endpoint_;
  std::unique_ptr<ControlClient> client_;
};

TEST_F(ControlServiceTest, TellsWhatAJobWaitsFor) {
  const auto agent = Attend("digits", "a", 2);
  agent->Await<Wait>();
  const auto status = client_->GetStatus(Of("digits"));
  ASSERT_TRUE(status.ok()) << status.status();
  ASSERT_EQ(status->jobs_size(), 1);
  const v1::JobStatus& job = status->jobs(0);
  EXPECT_EQ(job.phase(), v1::JOB_PHASE_FORMING);
  EXPECT_EQ(job.why().reason(), "waiting_for_nodes");
  EXPECT_GT(job.why().time_left_ms(), 0);
  ASSERT_EQ(job.nodes_size(), 1);
  EXPECT_EQ(job.nodes(0).node_id(), "a");
  EXPECT_EQ(job.nodes(0).address(), "127.0.0.1");
}

TEST_F(ControlServiceTest, AllJobsAreToldWhenNoneIsNamedAndASummaryHasNoNodes) {
  const auto one = Attend("one", "a", 1);
  const auto two = Attend("two", "a", 1);
  one->Await<Assignment>();
  two->Await<Assignment>();
  v1::StatusRequest request;
  request.set_summary(true);
  const auto status = client_->GetStatus(request);
  ASSERT_TRUE(status.ok()) << status.status();
  ASSERT_EQ(status->jobs_size(), 2);
  EXPECT_EQ(status->jobs(0).job_id(), "one");
  EXPECT_EQ(status->jobs(1).phase(), v1::JOB_PHASE_RUNNING);
  EXPECT_EQ(status->jobs(1).nodes_size(), 0);
}

TEST_F(ControlServiceTest, AnUnknownJobIsNamedWithTheNearestOne) {
  const auto agent = Attend("digits", "a", 1);
  agent->Await<Assignment>();
  const absl::Status status = client_->GetStatus(Of("digist")).status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_EQ(status.message(), "there is no job 'digist' at this master: did you mean 'digits'?");
  EXPECT_EQ(client_->StopJob(StopOf("digist")), status);
  const auto take = [](const v1::StatusResponse&) { return true; };
  EXPECT_EQ(client_->WatchStatus(Of("digist"), take), status);
}

TEST_F(ControlServiceTest, AWatchTellsEachStateInOrderUntilTheJobEnds) {
  const auto a = Attend("digits", "a", 2);
  a->Await<Wait>();
  std::unique_ptr<TestAgent> b;
  std::string seen;
  const absl::Status watched = client_->WatchStatus(Of("digits"), [&](const auto& status) {
    const v1::JobStatus& job = status.jobs(0);
    seen += std::string(seen.empty() ? "" : " ") + std::to_string(job.phase()) + "/" +
            std::to_string(job.generation());
    if (job.phase() == v1::JOB_PHASE_FORMING) b = Attend("digits", "b", 2);
    if (job.phase() == v1::JOB_PHASE_RUNNING) {
      a->client().Send(WorkersSucceeded{1, 0});
      b->client().Send(WorkersSucceeded{1, 0});
    }
    return !job.has_verdict();
  });
  EXPECT_TRUE(watched.ok()) << watched;
  EXPECT_EQ(seen.substr(0, 7), "0/0 2/1");
  EXPECT_EQ(seen.substr(seen.size() - 3), "4/1");
}

TEST_F(ControlServiceTest, StoppingAJobEndsItOnceAndSaysByWhom) {
  const auto agent = Attend("digits", "a", 1);
  const int64_t generation = agent->Await<Assignment>().generation;
  EXPECT_TRUE(client_->StopJob(StopOf("digits")).ok());
  agent->Await<StopWorkers>();
  agent->client().Send(WorkersStopped{generation, 0});
  EXPECT_EQ(agent->Await<Verdict>().cause, "job stopped by anna");
  const absl::Status again = client_->StopJob(StopOf("digits"));
  EXPECT_TRUE(absl::IsFailedPrecondition(again)) << again;
  EXPECT_EQ(again.message(), "job digits has ended already: job stopped by anna");
}

TEST_F(ControlServiceTest, ADrainReachesTheMembersAndAnUnknownNodeIsNamed) {
  const auto a = Attend("digits", "a", 2);
  const auto b = Attend("digits", "b", 2);
  a->Await<Assignment>();
  b->Await<Assignment>();
  v1::DrainNodeRequest node;
  node.set_job_id("digits");
  node.set_who("anna");
  EXPECT_TRUE(absl::IsInternal(client_->DrainNode(node)));
  node.set_node_id("c");
  EXPECT_EQ(client_->DrainNode(node), absl::NotFoundError("there is no node 'c' in job digits"));
  node.set_node_id("b");
  EXPECT_TRUE(client_->DrainNode(node).ok());
  EXPECT_EQ(a->Await<Drain>().reason, "a node is drained by anna");
  v1::DrainJobRequest job;
  job.set_job_id("digist");
  job.set_who("anna");
  EXPECT_TRUE(absl::IsNotFound(client_->DrainJob(job)));
  job.set_job_id("digits");
  EXPECT_TRUE(client_->DrainJob(job).ok());
}

TEST_F(ControlServiceTest, AWatchEndsWithTheMaster) {
  std::thread stop;
  const absl::Status watched = client_->WatchStatus({}, [&](const auto&) {
    if (!stop.joinable()) stop = std::thread([this] { server_.reset(); });
    return true;
  });
  EXPECT_TRUE(absl::IsUnavailable(watched)) << watched;
  stop.join();
}

// The answer of grpc.health.v1.Health/Check as it is on the wire; Debian has no generated code for
// it.
std::string HealthOf(const HostPort& endpoint, const std::string& service) {
  const std::string name =
      service.empty() ? "" : "\x0a" + std::string(1, static_cast<char>(service.size())) + service;
  grpc::GenericStub stub(
      grpc::CreateChannel(ToString(endpoint), grpc::InsecureChannelCredentials()));
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  const grpc::Slice slice(name);
  const auto call = stub.PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check",
                                          grpc::ByteBuffer(&slice, 1), &queue);
  call->StartCall();
  grpc::ByteBuffer answer;
  grpc::Status status;
  call->Finish(&answer, &status, &context);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  grpc::Slice bytes;
  if (!status.ok() || !answer.DumpToSingleSlice(&bytes).ok()) return status.error_message();
  return std::string(reinterpret_cast<const char*>(bytes.begin()), bytes.size());
}

TEST_F(ControlServiceTest, AMasterServes) {
  for (const char* service : {"", "muster.v1.Rendezvous", "muster.v1.Control"}) {
    EXPECT_EQ(HealthOf(endpoint_, service), "\x08\x01") << service;
  }
}

TEST_F(ControlServiceTest, AStandbyIsReachableAndDoesNotServe) {
  const auto standby = StandbyServer::Start({"127.0.0.1", 0}, {}).value();
  standby->SetLeader("node1:29400");
  const HostPort where{"127.0.0.1", standby->port()};
  for (const char* service : {"", "muster.v1.Rendezvous", "muster.v1.Control"}) {
    EXPECT_EQ(HealthOf(where, service), "\x08\x02") << service;
  }
  const absl::Status status =
      ControlClient::Connect(where, {}, 20s).value()->GetStatus({}).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_NE(status.message().find("the master is at node1:29400"), std::string::npos) << status;
}

TEST_F(ControlServiceTest, WhoIsNoMasterIsToldApartFromNobody) {
  const ReservedPort nobody;
  const absl::Status status =
      ControlClient::Connect({"127.0.0.1", nobody.number()}, {}, 20s).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(status.message(),
            "no master at 127.0.0.1:" + std::to_string(nobody.number()) + ": connection refused");
}

TEST_F(ControlServiceTest, WhoClosesWithoutAnAnswerIsNoMaster) {
  ReservedPort port;
  port.Listen();
  std::thread closer([&] {
    // The one that is asked as a master, and the one that is asked whether it speaks TLS.
    for (int i = 0; i < 2; ++i) {
      const UniqueFd accepted(accept4(port.fd(), nullptr, nullptr, SOCK_CLOEXEC));
      char byte;
      EXPECT_EQ(recv(accepted.get(), &byte, 1, 0), 1);
    }
  });
  const absl::Status status = ControlClient::Connect({"127.0.0.1", port.number()}, {}, 2s).status();
  closer.join();
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
  EXPECT_NE(status.message().find("what listens there is no master"), std::string::npos) << status;
}

}  // namespace
}  // namespace muster
