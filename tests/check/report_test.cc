#include "check/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json_leaves.h"

namespace muster::check {
namespace {

Observed TwoNodes() {
  Observed observed;
  observed.world_size = 2;
  observed.master_addr = "10.0.0.1";
  observed.master_port = 29500;
  for (int rank : {0, 1}) {
    Facts facts;
    facts.rank = facts.node = rank;
    facts.host = rank == 0 ? "a" : "b";
    facts.address = rank == 0 ? "10.0.0.1" : "10.0.0.2";
    facts.backend = "gloo";
    facts.muster = "0.1.0";
    facts.interfaces = {{"eth0", 1500, {facts.address}}};
    facts.infiniband = {"mlx5_0:1 ACTIVE"};
    facts.variables = {{"NCCL_IB_DISABLE", "1"}};
    observed.facts.push_back(facts);
  }
  observed.all_reduces = {{"TCP", 61e-6, 1.25e9, -1, ""}};
  return observed;
}

const std::vector<Finding> kFindings = {
    {Severity::kProblem, "node 1 (b)", "something\nis \x1b[31mwrong", "mend it"}};

TEST(Report, IsATable) {
  EXPECT_EQ(
      ReportTable(TwoNodes(), kFindings),
      "RANK   NODE   HOST   ADDRESS    INTERFACE   MTU    BACKEND   GPUS   MUSTER   LIBTORCH   "
      "NCCL   DRIVER"
      R"(
0      0      a      10.0.0.1   eth0        1500   gloo      0      0.1.0    -          -      -
1      1      b      10.0.0.2   eth0        1500   gloo      0      0.1.0    -          -      -

NODE   P2P           INFINIBAND                               VARIABLES
0      no two GPUs   off (NCCL_IB_DISABLE): mlx5_0:1 ACTIVE   NCCL_IB_DISABLE=1
1      no two GPUs   off (NCCL_IB_DISABLE): mlx5_0:1 ACTIVE   NCCL_IB_DISABLE=1

ALL-REDUCE   RANKS   LATENCY   BANDWIDTH
TCP          2       61 us     1.25 GB/s
LibTorch is not checked: see --torch.

1 problem
problem  node 1 (b): something is  [31mwrong
         -> mend it
)");
}

TEST(Report, OfWhoHasMetNobodyShowsItsInterfaces) {
  Observed own = TwoNodes();
  own.world_size = 0;
  EXPECT_EQ(ReportTable(own, {}), R"(HOST   INTERFACE   MTU    ADDRESSES
a      eth0        1500   10.0.0.1

nothing found
)");
}

TEST(Report, IsJsonWithTheSameFacts) {
  const std::string json = ReportJson(TwoNodes(), kFindings);
  EXPECT_EQ(json.find('\n'), json.size() - 1);
  const JsonLeaves leaves = ReadJsonLeaves(json);
  ASSERT_TRUE(leaves.complete) << json;
  const auto value = [&](const char* path) {
    const auto found = leaves.values.find(path);
    return found == leaves.values.end() ? "missing" : found->second;
  };
  EXPECT_EQ(value("world_size"), "2");
  EXPECT_EQ(value("ranks.1.rank"), "1");
  EXPECT_EQ(value("ranks.1.host"), "b");
  EXPECT_EQ(value("ranks.1.variable.0"), "NCCL_IB_DISABLE=1");
  EXPECT_EQ(value("ranks.1.interface.0"), "eth0 1500 10.0.0.2");
  EXPECT_EQ(value("all_reduces.0.bytes_per_second"), "1250000000");
  EXPECT_EQ(value("all_reduces.0.latency_s"), "0.000061000");
  EXPECT_EQ(value("findings.0.severity"), "problem");
  EXPECT_EQ(value("findings.0.advice"), "mend it");
}

}  // namespace
}  // namespace muster::check
