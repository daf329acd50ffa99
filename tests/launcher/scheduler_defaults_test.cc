#include "launcher/scheduler_defaults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/launcher/plan_fixture.h"

namespace muster {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class SchedulerDefaultsTest : public PlanFixture {
 protected:
  void InAStepOfTwoNodes() {
    env_["SLURM_JOB_ID"] = "4711";
    env_["SLURM_STEP_ID"] = "0";
    env_["SLURM_NNODES"] = "2";
    env_["SLURM_NODEID"] = "1";
    env_["SLURM_JOB_NODELIST"] = "gpu[03-04]";
    env_["SLURM_STEP_TASKS_PER_NODE"] = "1(x2)";
  }
};

TEST_F(SchedulerDefaultsTest, AStepOfSlurmNeedsNoOptions) {
  InAStepOfTwoNodes();
  Plan plan = Make({});
  EXPECT_EQ(plan.agent.settings.nodes_max, 2);
  EXPECT_EQ(plan.agent.job_id, "4711");
  EXPECT_EQ(plan.agent.endpoint_host, "gpu03");
  EXPECT_EQ(plan.agent.endpoint_port, 29400);
  EXPECT_EQ(plan.agent.fixed_group_rank, -1);
  EXPECT_EQ(plan.agent.node_id, "node1");
  EXPECT_THAT(plan.warnings, IsEmpty());
  std::string text = DryRunText(plan);
  EXPECT_THAT(text, ContainsRegex("nodes +2 +SLURM_NNODES\n"));
  EXPECT_THAT(text, ContainsRegex("job id +4711 +SLURM_JOB_ID\n"));
  EXPECT_THAT(text, ContainsRegex("endpoint +gpu03:29400 +SLURM_JOB_NODELIST\n"));
}

TEST_F(SchedulerDefaultsTest, TheStepsOwnSizeAndHostsWinOverTheJobs) {
  InAStepOfTwoNodes();
  env_["SLURM_STEP_NUM_NODES"] = "3";
  env_["SLURM_STEP_NODELIST"] = "b[1-3]";
  Plan plan = Make({});
  EXPECT_EQ(plan.agent.settings.nodes_max, 3);
  EXPECT_EQ(plan.agent.endpoint_host, "b1");
}

TEST_F(SchedulerDefaultsTest, WhatIsGivenWins) {
  InAStepOfTwoNodes();
  env_["PET_RDZV_ID"] = "mine";
  Plan plan = Make({"--rdzv-endpoint=m:7"});
  EXPECT_EQ(plan.agent.job_id, "mine");
  EXPECT_EQ(plan.agent.endpoint_host, "m");
  EXPECT_FALSE(Make({"--nnodes=1"}).spans_nodes());
  EXPECT_FALSE(Make({"--standalone"}).spans_nodes());
  plan = Make({"--master-addr=10.0.0.1"});
  EXPECT_EQ(plan.agent.fixed_group_rank, 1);
  EXPECT_EQ(plan.agent.fixed_master_addr, "10.0.0.1");
}

TEST_F(SchedulerDefaultsTest, OutsideOfAStepAndOnOneNodeNothingIsTaken) {
  InAStepOfTwoNodes();
  env_.erase("SLURM_STEP_ID");
  EXPECT_FALSE(Make({}).spans_nodes());
  InAStepOfTwoNodes();
  env_["SLURM_NNODES"] = "1";
  EXPECT_FALSE(Make({}).spans_nodes());
}

TEST_F(SchedulerDefaultsTest, SeveralTasksOnANodeAreRefused) {
  InAStepOfTwoNodes();
  env_["SLURM_STEP_TASKS_PER_NODE"] = "8(x2)";
  EXPECT_THAT(Unmet({}), HasSubstr("--ntasks-per-node=1"));
  EXPECT_TRUE(Make({"--nnodes=2"}).spans_nodes());
}

TEST_F(SchedulerDefaultsTest, WrongVariablesAreNamed) {
  InAStepOfTwoNodes();
  env_["SLURM_JOB_NODELIST"] = "gpu[03";
  EXPECT_THAT(Unmet({}), StartsWith("SLURM_JOB_NODELIST: 'gpu[03' is no list of hosts"));
  env_["SLURM_NNODES"] = "two";
  EXPECT_THAT(Unmet({}), StartsWith("SLURM_NNODES: 'two' is not a whole number"));
}

TEST_F(SchedulerDefaultsTest, AnIndexedJobHasItsRankFromKubernetes) {
  env_["JOB_COMPLETION_INDEX"] = "1";
  Plan plan = Make({"--nnodes=2", "--master-addr=job-0.svc", "--rdzv-id=x"});
  EXPECT_EQ(plan.agent.fixed_group_rank, 1);
  EXPECT_EQ(Make({"--nnodes=2", "--rdzv-endpoint=m", "--rdzv-id=x"}).agent.fixed_group_rank, -1);
  EXPECT_EQ(Make({}).agent.fixed_group_rank, -1);
  env_["JOB_COMPLETION_INDEX"] = "x";
  EXPECT_THAT(Unmet({"--nnodes=2"}), StartsWith("JOB_COMPLETION_INDEX: 'x'"));
}

TEST_F(SchedulerDefaultsTest, KubeflowsFiveVariablesAreAStaticJob) {
  env_["PET_NNODES"] = "2";
  env_["PET_NPROC_PER_NODE"] = "2";
  env_["PET_NODE_RANK"] = "1";
  env_["PET_MASTER_ADDR"] = "job-node-0-0.job";
  env_["PET_MASTER_PORT"] = "29500";
  env_["KUBERNETES_SERVICE_HOST"] = "10.0.0.1";
  Plan plan = Make({});
  EXPECT_EQ(plan.agent.slots, 2);
  EXPECT_EQ(plan.agent.fixed_group_rank, 1);
  EXPECT_EQ(plan.agent.endpoint_host, "job-node-0-0.job");
  EXPECT_EQ(plan.agent.fixed_master_port, 29500);
  EXPECT_EQ(plan.agent.stop_grace, std::chrono::seconds(25));
  EXPECT_THAT(DryRunText(plan), ContainsRegex("shutdown timeout +25s +default in Kubernetes\n"));
}

}  // namespace
}  // namespace muster
