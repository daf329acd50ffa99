#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/launcher/plan_fixture.h"

// Plans of jobs that span nodes.

namespace muster {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

using PlanNodesTest = PlanFixture;

// ── Several nodes, given ranks ──

TEST_F(PlanNodesTest, StaticJobsTakeAddressPortAndRankAsGiven) {
  Plan plan = Make({"--nnodes=2", "--node-rank=1", "--master-addr=10.0.0.1", "--rdzv-id=s"});
  EXPECT_TRUE(plan.spans_nodes());
  EXPECT_EQ(plan.agent.fixed_group_rank, 1);
  EXPECT_EQ(plan.agent.fixed_master_addr, "10.0.0.1");
  EXPECT_EQ(plan.agent.fixed_master_port, 29500);
  EXPECT_EQ(plan.agent.endpoint_host, "10.0.0.1");
  EXPECT_EQ(plan.agent.endpoint_port, 29400);
  EXPECT_EQ(plan.agent.node_id, "node1");
  EXPECT_FALSE(plan.node_id_needs_slot);
  EXPECT_EQ(plan.agent.settings.join_timeout, seconds(900));
  EXPECT_THAT(plan.warnings, IsEmpty());
}

TEST_F(PlanNodesTest, TheStaticMasterListensAHundredBelowOrAboveMasterPort) {
  auto endpoint_port = [this](const char* master_port) {
    return Make({"--nnodes=2", "--rdzv-id=s", "--master-port", master_port}).agent.endpoint_port;
  };
  EXPECT_EQ(endpoint_port("29501"), 29401);
  EXPECT_EQ(endpoint_port("1124"), 1024);
  EXPECT_EQ(endpoint_port("1123"), 1223);
}

TEST_F(PlanNodesTest, TheNodeWithRank0OfAStaticJobNeedsAFreePort) {
  std::vector<std::string> words = {"--nnodes=2", "--rdzv-id=s", "--master-addr=m",
                                    "--node-rank=1"};
  machine_.ports_in_use = {29500};
  EXPECT_EQ(Make(words).agent.fixed_master_port, 29500);
  EXPECT_THAT(machine_.checked_ports, IsEmpty());
  words.back() = "--node-rank=0";
  EXPECT_EQ(Unmet(words), "port 29500 is in use: choose another --master-port on all nodes");
  EXPECT_THAT(machine_.checked_ports, ElementsAre("m:29500"));
}

TEST_F(PlanNodesTest, RanksMustBeBelowTheNumberOfNodes) {
  EXPECT_THAT(UsageError({"--node-rank=1"}), StartsWith("--node-rank: rank 1 of 1 node"));
  EXPECT_THAT(UsageError({"--nnodes=2", "--node-rank=2"}), HasSubstr("rank 2 of 2 nodes"));
}

TEST_F(PlanNodesTest, GivenRanksNeedAllNodes) {
  Plan plan = Make({"--nnodes=2:4", "--node-rank=0", "--rdzv-id=s"});
  EXPECT_EQ(plan.agent.settings.nodes_min, 4);
  EXPECT_THAT(plan.warnings, ElementsAre(HasSubstr("MIN of --nnodes is ignored")));
}

TEST_F(PlanNodesTest, AnEndpointMovesTheMasterOfAStaticJob) {
  Plan plan = Make({"--nnodes=2", "--node-rank=1", "--rdzv-endpoint=m:7000", "--rdzv-id=s",
                    "--master-addr=10.0.0.1", "--master-port=29600"});
  EXPECT_EQ(plan.agent.endpoint_host, "m");
  EXPECT_EQ(plan.agent.endpoint_port, 7000);
  EXPECT_EQ(plan.agent.fixed_group_rank, 1);
  EXPECT_EQ(plan.agent.fixed_master_port, 29600);
  plan = Make({"--nnodes=2", "--node-rank=1", "--rdzv-endpoint=m:7000", "--rdzv-id=s"});
  EXPECT_EQ(plan.agent.fixed_master_port, 0);
  EXPECT_THAT(UsageError({"--nnodes=2", "--node-rank=1", "--rdzv-endpoint=m:7000",
                          "--master-addr=m", "--master-port=7000"}),
              HasSubstr("which the workers need"));
}

// ── Several nodes at an endpoint ──

TEST_F(PlanNodesTest, AnEndpointMakesADynamicJob) {
  Plan plan = Make({"--nnodes=2:4", "--rdzv-endpoint=m", "--rdzv-id=x"});
  EXPECT_TRUE(plan.spans_nodes());
  EXPECT_EQ(plan.agent.endpoint_host, "m");
  EXPECT_EQ(plan.agent.endpoint_port, 29400);
  EXPECT_EQ(plan.agent.fixed_group_rank, -1);
  EXPECT_EQ(plan.agent.fixed_master_port, 0);
  EXPECT_EQ(plan.agent.settings.nodes_min, 2);
  EXPECT_EQ(plan.agent.settings.nodes_max, 4);
  EXPECT_EQ(plan.agent.settings.join_timeout, seconds(600));
  EXPECT_EQ(plan.agent.node_id, "host7");
  EXPECT_TRUE(plan.node_id_needs_slot);
  EXPECT_TRUE(Make({"--rdzv-endpoint=[::1]:7", "--rdzv-id=x"}).spans_nodes());
}

TEST_F(PlanNodesTest, AMissingOrEmptyIdIsSaid) {
  Plan plan = Make({"--nnodes=2", "--rdzv-endpoint=m"});
  EXPECT_EQ(plan.agent.job_id, "none");
  EXPECT_THAT(plan.warnings, ElementsAre(StartsWith("no --rdzv-id: ")));
  EXPECT_THAT(UsageError({"--nnodes=2", "--rdzv-endpoint=m", "--rdzv-id="}),
              StartsWith("--rdzv-id is empty"));
}

TEST_F(PlanNodesTest, ADynamicJobWithoutEndpointMeetsOnThisMachine) {
  Plan plan = Make({"--nnodes=2", "--rdzv-backend=c10d", "--rdzv-id=x"});
  EXPECT_EQ(plan.agent.endpoint_host, "localhost");
  EXPECT_EQ(plan.agent.endpoint_port, 29400);
  EXPECT_THAT(plan.warnings, ElementsAre(StartsWith("no --rdzv-endpoint: ")));
}

TEST_F(PlanNodesTest, ARankHasNoEffectAtAnEndpoint) {
  Plan plan = Make({"--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=m", "--rdzv-id=x",
                    "--node-rank=1", "--master-port=1234"});
  EXPECT_EQ(plan.agent.fixed_group_rank, -1);
  EXPECT_THAT(plan.warnings, ElementsAre(StartsWith("--node-rank has no effect"),
                                         StartsWith("--master-port is not used")));
}

TEST_F(PlanNodesTest, EtcdIsMetAtItsEndpoint) {
  for (const char* backend : {"etcd", "etcd-v2"}) {
    Plan plan = Make({"--nnodes=2:4", "--rdzv-backend", backend, "--rdzv-endpoint=e:2380",
                      "--rdzv-id=x", "--rdzv-conf=protocol=https,ca_cert=/ca.pem"});
    EXPECT_EQ(plan.agent.endpoint_host, "e");
    EXPECT_EQ(plan.agent.endpoint_port, 2380);
    ASSERT_TRUE(plan.agent.election.has_value());
    EXPECT_TRUE(plan.agent.election->etcd.tls);
    EXPECT_EQ(plan.agent.election->etcd.ca_file, "/ca.pem");
    EXPECT_EQ(plan.agent.election->prefix, "/muster/jobs/x");
    EXPECT_THAT(plan.warnings, IsEmpty());
    const std::string text = DryRunText(plan);
    EXPECT_THAT(text, ContainsRegex("rendezvous +etcd +--rdzv-backend\n"));
    EXPECT_THAT(text, ContainsRegex("endpoint +e:2380 +--rdzv-endpoint\n"));
    EXPECT_THAT(text, ContainsRegex("etcd CA +/ca.pem +--rdzv-conf\n"));
  }
  EXPECT_EQ(Make({"--nnodes=2", "--rdzv-backend=etcd", "--rdzv-endpoint=e", "--rdzv-id=x"})
                .agent.endpoint_port,
            2379);
  EXPECT_THAT(UsageError({"--nnodes=2", "--rdzv-backend=etcd", "--rdzv-endpoint=e:0"}),
              HasSubstr("is no port of etcd"));
  EXPECT_FALSE(Make({"--standalone", "--rdzv-backend=etcd"}).spans_nodes());
}

TEST_F(PlanNodesTest, EtcdMayHaveSeveralMembers) {
  const Plan plan = Make({"--nnodes=2", "--rdzv-backend=etcd", "--rdzv-endpoint=e1,e2:1",
                          "--rdzv-id=a b", "--rdzv-conf=etcd_prefix=/x,leader_lease=3"});
  EXPECT_EQ(EtcdName(plan.agent.election->etcd), "etcd at e1:2379,e2:1");
  EXPECT_EQ(plan.agent.election->prefix, "/x/jobs/a%20b");
  EXPECT_EQ(plan.agent.election->lease, std::chrono::seconds(3));
  EXPECT_THAT(UsageError({"--nnodes=2", "--rdzv-backend=etcd", "--rdzv-endpoint=e", "--rdzv-id=x",
                          "--rdzv-conf=user=u"}),
              HasSubstr("password come together"));
}

TEST_F(PlanNodesTest, KeysOfEtcdHaveNoEffectElsewhere) {
  Plan plan = Make({"--nnodes=2", "--rdzv-endpoint=m", "--rdzv-id=x", "--rdzv-conf=cert=/c"});
  EXPECT_FALSE(plan.agent.election.has_value());
  EXPECT_THAT(plan.warnings, ElementsAre("--rdzv-conf: cert has no effect without --rdzv-backend "
                                         "etcd"));
}

TEST_F(PlanNodesTest, TheWayOfMeetingIsNamedAsTorchrunDoes) {
  auto way = [this](std::vector<std::string> words) { return DryRunText(Make(std::move(words))); };
  EXPECT_THAT(way({"--nnodes=2", "--rdzv-endpoint=m", "--rdzv-id=x"}),
              ContainsRegex("rendezvous +c10d +--rdzv-endpoint\n"));
  EXPECT_THAT(way({"--nnodes=2", "--rdzv-id=x"}), ContainsRegex("rendezvous +static +default\n"));
}

TEST_F(PlanNodesTest, BadEndpointsAreNamed) {
  for (const char* bad : {"127.0.0.1:99999", "a b", "[::1", "m:x"}) {
    EXPECT_THAT(UsageError({"--rdzv-endpoint", bad}), StartsWith("--rdzv-endpoint: ")) << bad;
  }
  env_["PET_RDZV_ENDPOINT"] = "m:x";
  EXPECT_THAT(UsageError({}), StartsWith("PET_RDZV_ENDPOINT: "));
}

TEST_F(PlanNodesTest, NodeNamesComeFromTheSchedulerWhereThereIsOne) {
  std::vector<std::string> words = {"--nnodes=2", "--rdzv-endpoint=m", "--rdzv-id=x"};
  env_["JOB_COMPLETION_INDEX"] = "4";
  EXPECT_EQ(Make(words).agent.node_id, "node4");
  env_["SLURM_NODEID"] = "2";
  EXPECT_EQ(Make(words).agent.node_id, "node2");
  env_["SLURM_NODEID"] = "x";
  EXPECT_EQ(Make(words).agent.node_id, "node4");
  words.emplace_back("--node-id=mine");
  EXPECT_EQ(Make(words).agent.node_id, "mine");
  EXPECT_FALSE(Make(words).node_id_needs_slot);
}

TEST_F(PlanNodesTest, SettingsComeFromRdzvConfAndOptions) {
  Plan plan = Make({"--nnodes=2", "--rdzv-endpoint=m", "--rdzv-id=x", "--max-restarts=3",
                    "--max-restart-delay=5m", "--rdzv-conf",
                    ("join_timeout=60,last_call_timeout=2,keep_alive_interval=1,"
                     "keep_alive_max_attempt=4,is_host=false,timeout=9"),
                    "--fencing=strict", "--join-policy=restart", "--exit-barrier-timeout=1m"});
  const JobSettings& settings = plan.agent.settings;
  EXPECT_EQ(settings.max_restarts, 3);
  EXPECT_EQ(settings.max_restart_delay, seconds(300));
  EXPECT_EQ(settings.join_timeout, seconds(60));
  EXPECT_EQ(settings.last_call, seconds(2));
  EXPECT_EQ(settings.lease(), seconds(4));
  EXPECT_EQ(settings.fencing, Fencing::kStrict);
  EXPECT_EQ(settings.master_loss_timeout, seconds(30));
  EXPECT_EQ(settings.join_policy, JoinPolicy::kRestart);
  EXPECT_EQ(settings.exit_barrier_timeout, seconds(60));
  EXPECT_EQ(plan.agent.host_master, HostMaster::kNo);
  EXPECT_THAT(plan.warnings, ElementsAre(HasSubstr("did you mean join_timeout?")));
}

TEST_F(PlanNodesTest, TheMasterLossTimeoutDependsOnTheFencing) {
  EXPECT_EQ(Make({}).agent.settings.master_loss_timeout, hours(1));
  EXPECT_EQ(Make({"--fencing=strict"}).agent.settings.master_loss_timeout, seconds(30));
  EXPECT_EQ(
      Make({"--fencing=strict", "--master-loss-timeout=5m"}).agent.settings.master_loss_timeout,
      seconds(300));
}

TEST_F(PlanNodesTest, WithStrictFencingWorkersWhoseMusterWasKilledFitIntoTheFence) {
  std::vector<std::string> words = {"--nnodes=2", "--rdzv-endpoint=m", "--rdzv-id=x",
                                    "--fencing=strict", "--master-loss-timeout=4s"};
  EXPECT_EQ(Make(words).agent.orphan_grace, milliseconds(200));
  words.emplace_back("--orphan-grace=0.3s");
  EXPECT_THAT(UsageError(words), HasSubstr("a twentieth of --master-loss-timeout, 200ms"));
}

TEST_F(PlanNodesTest, UnitsAndFailuresOfNodesAreSettingsOfTheJob) {
  const Plan plan = Make({"--nnodes=2:4", "--rdzv-endpoint=m", "--rdzv-id=x", "--node-unit=2",
                          "--max-node-failures=3", "--node-failure-window=30m"});
  EXPECT_EQ(plan.agent.settings.node_unit, 2);
  EXPECT_EQ(plan.agent.settings.max_node_failures, 3);
  EXPECT_EQ(plan.agent.settings.node_failure_window, seconds(1800));
  EXPECT_THAT(UsageError({"--nnodes=3", "--rdzv-endpoint=m", "--rdzv-id=x", "--node-unit=2"}),
              HasSubstr("give multiples of it"));
}

TEST_F(PlanNodesTest, TimeoutIsTheWaitOfAStaticJob) {
  EXPECT_EQ(
      Make({"--nnodes=2", "--rdzv-id=s", "--rdzv-conf=timeout=5"}).agent.settings.join_timeout,
      seconds(5));
}

}  // namespace
}  // namespace muster
