#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <vector>

#include "tests/launcher/plan_fixture.h"

namespace muster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

using PlanTest = PlanFixture;

// ── Workers ──

TEST_F(PlanTest, OneWorkerUnderPythonByDefault) {
  Plan plan = Make({});
  EXPECT_EQ(plan.agent.slots, 1);
  EXPECT_THAT(plan.agent.argv, ElementsAre("/usr/bin/python3", "-u", "train.py"));
  EXPECT_TRUE(plan.agent.single_node());
  EXPECT_FALSE(plan.spans_nodes());
  EXPECT_THAT(plan.warnings, IsEmpty());
}

TEST_F(PlanTest, WorkersAreCountedOnTheMachine) {
  EXPECT_EQ(Make({"--nproc-per-node=cpu"}).agent.slots, 4);
  EXPECT_EQ(Make({"--nproc-per-node=auto"}).agent.slots, 4);
  machine_.gpus = 8;
  EXPECT_EQ(Make({"--nproc-per-node=gpu"}).agent.slots, 8);
  EXPECT_EQ(Make({"--nproc-per-node=auto"}).agent.slots, 8);
}

TEST_F(PlanTest, CudaVisibleDevicesLimitsTheGpus) {
  machine_.gpus = 8;
  env_["CUDA_VISIBLE_DEVICES"] = "5,7";
  EXPECT_EQ(Make({"--nproc-per-node=gpu"}).agent.slots, 2);
  env_["CUDA_VISIBLE_DEVICES"] = "GPU-1,3,9,1";  // CUDA stops at the entry that is no device
  EXPECT_EQ(Make({"--nproc-per-node=gpu"}).agent.slots, 2);
  for (const char* none : {"", "-1", "NoDevFiles"}) {
    env_["CUDA_VISIBLE_DEVICES"] = none;
    EXPECT_THAT(Unmet({"--nproc-per-node=gpu"}), HasSubstr("CUDA_VISIBLE_DEVICES"));
    EXPECT_EQ(Make({"--nproc-per-node=auto"}).agent.slots, 4);
  }
}

TEST_F(PlanTest, GpuWithoutAGpuIsAnError) {
  EXPECT_EQ(Unmet({"--nproc-per-node=gpu"}),
            "--nproc-per-node: 'gpu' and this machine has no usable GPU: give a number or cpu");
}

TEST_F(PlanTest, VirtualLocalRanksNeedAnEntryEach) {
  env_["CUDA_VISIBLE_DEVICES"] = "5";
  EXPECT_THAT(Unmet({"--virtual-local-rank", "--nproc-per-node=2"}),
              HasSubstr("2 workers and 1 entries in CUDA_VISIBLE_DEVICES"));
  env_["CUDA_VISIBLE_DEVICES"] = "5,7";
  EXPECT_TRUE(Make({"--virtual-local-rank", "--nproc-per-node=2"}).agent.virtual_local_rank);
}

TEST_F(PlanTest, ABindingPutsWorkersNearTheirGpus) {
  EXPECT_THAT(Make({}).agent.cpus, IsEmpty());
  machine_.gpus = 4;
  Plan plan = Make({"--nproc-per-node=gpu", "--numa-binding=exclusive"});
  EXPECT_THAT(plan.agent.cpus,
              ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(2), ElementsAre(3)));
  EXPECT_THAT(DryRunText(plan), HasSubstr("CPUs of local rank 3"));
  env_["CUDA_VISIBLE_DEVICES"] = "3";
  EXPECT_THAT(Make({"--numa-binding=node"}).agent.cpus, ElementsAre(ElementsAre(2, 3)));
}

TEST_F(PlanTest, ABindingWithoutGpusGoesRoundTheNumaNodes) {
  EXPECT_THAT(Make({"--nproc-per-node=2", "--numa-binding=node"}).agent.cpus,
              ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3)));
  EXPECT_THAT(Unmet({"--nproc-per-node=5", "--numa-binding=exclusive"}),
              StartsWith("--numa-binding: NUMA node 0 has 2 cores for 3 workers"));
}

TEST_F(PlanTest, AProgramIsNeeded) {
  Options options = ParseOptions({"--nnodes=1"}, env_).value();
  EXPECT_THAT(std::string(MakePlan(options, env_, machine_).status().message()),
              StartsWith("no program"));
}

TEST_F(PlanTest, WhatIsWrongWithTheOptionsIsSaidBeforeTheProgram) {
  machine_.files.clear();
  EXPECT_THAT(UsageError({"--node-rank=3"}), StartsWith("--node-rank: "));
}

// ── One node ──

TEST_F(PlanTest, AJobOfOneNodeHasARandomIdAndAnyPort) {
  Plan plan = Make({});
  EXPECT_EQ(plan.agent.job_id, "random-id");
  EXPECT_EQ(plan.agent.fixed_master_port, 0);
  EXPECT_EQ(plan.agent.node_id, "host7");
  EXPECT_FALSE(plan.node_id_needs_slot);
  EXPECT_THAT(machine_.checked_ports, IsEmpty());
  EXPECT_EQ(Make({"--rdzv-id=x"}).agent.job_id, "x");
  EXPECT_EQ(Make({"--rdzv-id="}).agent.job_id, "random-id");
}

TEST_F(PlanTest, AGivenPortIsTakenExactlyAndMustBeFree) {
  Plan plan = Make({"--master-port=29511"});
  EXPECT_EQ(plan.agent.fixed_master_addr, "127.0.0.1");
  EXPECT_EQ(plan.agent.fixed_master_port, 29511);
  EXPECT_EQ(plan.agent.job_id, "none");
  EXPECT_THAT(machine_.checked_ports, ElementsAre("127.0.0.1:29511"));
  EXPECT_TRUE(plan.agent.single_node());
  machine_.ports_in_use = {29511};
  EXPECT_EQ(Unmet({"--master-port=29511"}),
            "port 29511 is in use: choose another --master-port, or none for any free port");
  EXPECT_EQ(Make({"--master-port=0"}).agent.fixed_master_port, 0);
}

TEST_F(PlanTest, TheUsualVariablesOfAJobControllerWithOneNodeNeedNoMaster) {
  env_["PET_NNODES"] = "1";
  env_["PET_NODE_RANK"] = "0";
  env_["PET_MASTER_ADDR"] = "job-master-0";
  env_["PET_MASTER_PORT"] = "23456";
  Plan plan = Make({});
  EXPECT_FALSE(plan.spans_nodes());
  EXPECT_EQ(plan.agent.fixed_master_addr, "job-master-0");
  EXPECT_EQ(plan.agent.fixed_master_port, 23456);
}

TEST_F(PlanTest, StandaloneOverridesAnEndpointAndRefusesMoreNodes) {
  Plan plan = Make({"--standalone", "--rdzv-backend=c10d", "--rdzv-endpoint=203.0.113.9:9"});
  EXPECT_FALSE(plan.spans_nodes());
  EXPECT_EQ(plan.agent.job_id, "random-id");
  EXPECT_THAT(UsageError({"--standalone", "--nnodes=2"}), HasSubstr("drop one of them"));
  plan = Make({"--standalone", "--nnodes=1:4"});
  EXPECT_EQ(plan.agent.settings.nodes_max, 1);
  EXPECT_EQ(plan.warnings.size(), 1u);
}

TEST_F(PlanTest, PortZeroIsAPortThatNobodyElseCanKnow) {
  EXPECT_FALSE(Make({"--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0"}).spans_nodes());
  EXPECT_THAT(UsageError({"--nnodes=2", "--rdzv-endpoint=localhost:0"}), HasSubstr("give a port"));
  Plan plan = Make({"--nnodes=1:2", "--rdzv-endpoint=localhost:0", "--rdzv-id=x"});
  EXPECT_FALSE(plan.spans_nodes());
  EXPECT_EQ(plan.warnings.size(), 1u);
}

// ── How it runs ──

TEST_F(PlanTest, GraceIsTorchrunsAndShorterInKubernetes) {
  EXPECT_EQ(Make({}).agent.stop_grace, seconds(30));
  EXPECT_EQ(Make({}).agent.orphan_grace, milliseconds(500));
  env_["KUBERNETES_SERVICE_HOST"] = "10.0.0.1";
  EXPECT_EQ(Make({}).agent.stop_grace, seconds(25));
  env_["TORCH_ELASTIC_SHUTDOWN_TIMEOUT"] = "7";
  EXPECT_EQ(Make({}).agent.stop_grace, seconds(7));
  EXPECT_EQ(Make({"--shutdown-timeout=0"}).agent.stop_grace, seconds(0));
}

TEST_F(PlanTest, ASignalEitherEndsTheJobOrDoesNot) {
  Plan plan = Make({"--signals-to-handle=TERM,USR1"});
  EXPECT_THAT(plan.agent.signals_to_handle, ElementsAre(SIGTERM, SIGUSR1));
  EXPECT_THAT(plan.agent.signals_to_forward, ElementsAre(SIGUSR2));
  EXPECT_THAT(UsageError({"--signals-to-handle=USR1", "--signals-to-forward=USR1"}),
              StartsWith("SIGUSR1 is in --signals-to-handle and in"));
}

TEST_F(PlanTest, LogOptionsArriveAndWrongRanksAreSaid) {
  Plan plan = Make({"--nproc-per-node=2", "--log-dir=/logs", "-r", "0:1,1:2", "-t3",
                    "--log-line-prefix-template=${nmae}|${pid}:", "--local-ranks-filter=0,5",
                    "--duplicate-stdout-filters=loss"});
  EXPECT_EQ(plan.agent.log.log_dir, "/logs");
  EXPECT_EQ(plan.agent.log.redirects.For(1), Streams::kStderr);
  EXPECT_EQ(plan.agent.log.tee.For(1), Streams::kBoth);
  EXPECT_EQ(plan.agent.log.prefix_template, "${nmae}|${pid}:");
  EXPECT_THAT(plan.agent.log.duplicate_stdout_filters, ElementsAre("loss"));
  EXPECT_THAT(plan.warnings, ElementsAre(HasSubstr("macro ${nmae}"), HasSubstr("local rank 5")));
}

TEST_F(PlanTest, StdinGoesToARankThatExists) {
  EXPECT_EQ(Make({"--stdin=none"}).agent.stdin_mode, StdinMode::kNone);
  Plan plan = Make({"--stdin=1", "--nproc-per-node=2"});
  EXPECT_EQ(plan.agent.stdin_mode, StdinMode::kOneRank);
  EXPECT_EQ(plan.agent.stdin_local_rank, 1);
  EXPECT_THAT(UsageError({"--stdin=1"}), StartsWith("--stdin: "));
}

TEST_F(PlanTest, OptionsWithoutEffectAreRemarkedOn) {
  EXPECT_THAT(Make({"--monitor-interval=5"}).remarks,
              Contains(StartsWith("--monitor-interval has no effect")));
  EXPECT_THAT(Make({"--start-method=fork"}).remarks,
              Contains(StartsWith("--start-method has no effect")));
}

TEST_F(PlanTest, TheDryRunNamesTheSourceOfEachValue) {
  env_["PET_MAX_RESTARTS"] = "3";
  std::string text = DryRunText(Make({"--nproc-per-node=cpu", "--role", "actor"}));
  auto has_line = [&text](const std::string& pattern) {
    return ::testing::Matches(::testing::ContainsRegex(pattern + "\n"))(text);
  };
  EXPECT_TRUE(has_line("workers on this node +4 +--nproc-per-node cpu: CPUs")) << text;
  EXPECT_TRUE(has_line("role +actor +--role")) << text;
  EXPECT_TRUE(has_line("restarts +3 +PET_MAX_RESTARTS")) << text;
  EXPECT_TRUE(has_line("shutdown timeout +30s +default")) << text;
  EXPECT_TRUE(has_line("command +/usr/bin/python3 -u train.py +command line")) << text;
}

}  // namespace
}  // namespace muster
