#include "check/findings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <functional>
#include <utility>

namespace muster::check {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

Facts Rank(int rank, int node, const std::string& host, const std::string& address) {
  Facts facts;
  facts.rank = rank;
  facts.node = node;
  facts.host = host;
  facts.address = address;
  facts.port = 40000 + rank;
  facts.backend = "gloo";
  facts.muster = "0.1.0";
  facts.locked_memory = -1;
  facts.interfaces = {{"lo", 65536, {"127.0.0.1", "::1"}}, {"eth0", 1500, {address}}};
  facts.host_addresses = facts.node_addresses = {address};
  facts.master_addresses = {"10.0.0.1"};
  return facts;
}

Observed TwoNodes() {
  Observed observed;
  observed.world_size = 2;
  observed.master_addr = "10.0.0.1";
  observed.master_port = 29500;
  observed.facts = {Rank(0, 0, "a", "10.0.0.1"), Rank(1, 1, "b", "10.0.0.2")};
  return observed;
}

Observed TwoNodesOfGpus() {
  Observed observed = TwoNodes();
  for (Facts& facts : observed.facts) {
    facts.backend = "nccl";
    facts.gpus = facts.all_gpus = 2;
    facts.workers = 2;
    facts.nccl = "2.28.9";
    facts.driver = "570.124.06";
    facts.shared_memory = int64_t{64} << 30;
  }
  return observed;
}

// "problem | where | what | advice".
std::vector<std::string> Texts(const std::vector<Finding>& findings) {
  std::vector<std::string> texts;
  for (const Finding& one : findings) {
    texts.push_back((one.severity == Severity::kProblem ? "problem | " : "remark | ") + one.where +
                    " | " + one.what + " | " + one.advice);
  }
  return texts;
}

struct Row {
  const char* name;
  std::function<void(Observed&)> change;
  const char* text;  // of the only finding: a part of it
};

// Each row changes what is fine, and gives one finding.
void ExpectEach(const Observed& fine, const std::vector<Row>& rows) {
  EXPECT_THAT(FindingsOf(fine), IsEmpty());
  for (const Row& row : rows) {
    Observed observed = fine;
    row.change(observed);
    const std::vector<Finding> findings = FindingsOf(observed);
    EXPECT_THAT(Texts(findings), ElementsAre(HasSubstr(row.text))) << row.name;
    for (const Finding& finding : findings) {
      EXPECT_FALSE(finding.advice.empty()) << row.name;
      EXPECT_THAT(finding.what + finding.advice, Not(HasSubstr("\n"))) << row.name;
    }
  }
}

TEST(Findings, OfTheNetwork) {
  ExpectEach(
      TwoNodes(),
      {
          {"a rank is missing", [](Observed& all) { all.facts.pop_back(); },
           "problem | rank 1 | has not reached rank 0 at MASTER_ADDR 10.0.0.1, port 29500 | read"},
          {"a firewall",
           [](Observed& all) {
             all.failed_dials = {{0, 1, "10.0.0.2", 40001, ETIMEDOUT}};
           },
           "problem | node 0 (a) | cannot reach node 1 (b) at 10.0.0.2, worker port 40001: "
           "Connection timed out | nothing comes back: let TCP through"},
          {"a closed port",
           [](Observed& all) {
             all.failed_dials = {{1, 0, "10.0.0.1", 40000, ECONNREFUSED}};
           },
           "problem | node 1 (b) | cannot reach node 0 (a) at 10.0.0.1, worker port 40000: "
           "Connection refused | the host answers"},
          {"no route",
           [](Observed& all) {
             all.failed_dials = {{1, 0, "10.0.0.1", 40000, EHOSTUNREACH}};
           },
           "there is no way to that address"},
          {"an address that two nodes have",
           [](Observed& all) {
             all.facts[1].address = "10.0.0.1";
             all.facts[1].interfaces[1].addresses = all.facts[1].node_addresses = {"10.0.0.1"};
           },
           "problem | node 1 (b) | has the same address as node 0 (a): 10.0.0.1"},
          {"a --local-addr of nobody",
           [](Observed& all) {
             all.facts[1].address = "10.9.9.9";
             all.facts[1].node_addresses = {"10.9.9.9"};
           },
           "problem | node 1 (b) | --local-addr 10.9.9.9 is no address of this host | give one of "
           "its own, by which the others reach it, or leave it away; it has 10.0.0.2"},
          {"a --local-addr that is no name",
           [](Observed& all) {
             all.facts[1].address = "elsewhere";
             all.facts[1].node_addresses = {};
           },
           "problem | node 1 (b) | --local-addr elsewhere is not known here | correct the name"},
          {"an address of NAT",
           [](Observed& all) { all.facts[0].master_addresses = {"198.51.100.1"}; },
           "remark | node 0 (a) | MASTER_ADDR 10.0.0.1 is no address of the host of rank 0"},
          {"a name on the loopback line, at rank 0",
           [](Observed& all) { all.facts[0].master_addresses = {"127.0.1.1"}; },
           "remark | node 0 (a) | MASTER_ADDR 10.0.0.1 is a loopback address on the host of rank "
           "0"},
          {"a host name on the loopback line",
           [](Observed& all) { all.facts[1].host_addresses = {"127.0.1.1"}; },
           "remark | node 1 (b) | its own name resolves to 127.0.1.1, which no other host"},
          {"a host name that is nowhere", [](Observed& all) { all.facts[1].host_addresses = {}; },
           "its own name resolves to nothing"},
          {"MTUs", [](Observed& all) { all.facts[1].interfaces[1].mtu = 9000; },
           "remark |  | the MTU differs: 1500 on eth0 of node 0 (a); 9000 on eth0 of node 1 (b)"},
          {"an all-reduce",
           [](Observed& all) {
             all.all_reduces = {{"TCP", 1e-4, 1e9, -1, ""}, {"gloo", 0, 0, 1, "no device"}};
           },
           "problem | rank 1 | the all-reduce over gloo failed: no device"},
      });
}

TEST(Findings, OfVersionsAndVariables) {
  ExpectEach(
      TwoNodesOfGpus(),
      {
          {"muster", [](Observed& all) { all.facts[1].muster = "0.2.0"; },
           "problem |  | muster differs: 0.1.0 on node 0 (a); 0.2.0 on node 1 (b) | install"},
          {"LibTorch",
           [](Observed& all) {
             all.facts[0].libtorch = "2.11.0";
             all.facts[1].libtorch = "2.9.1";
           },
           "problem |  | LibTorch differs: 2.11.0 on node 0 (a); 2.9.1 on node 1 (b) | use the"},
          {"LibTorch on one", [](Observed& all) { all.facts[0].libtorch = "2.11.0"; },
           "LibTorch differs: none on node 1 (b); 2.11.0 on node 0 (a)"},
          {"LibTorch not looked at on one",
           [](Observed& all) {
             all.facts[0].libtorch = "2.11.0";
             all.facts[1].torch = "no";
             all.facts[1].nccl = "2.20.5";  // the loader's, not the one beside LibTorch
           },
           "remark | node 1 (b) | --torch no: its LibTorch is not looked at, and so no all-reduce "
           "of LibTorch's is measured | leave --torch no away there, or give it on all nodes"},
          {"NCCL where nobody looks at LibTorch",
           [](Observed& all) {
             all.facts[0].torch = all.facts[1].torch = "no";
             all.facts[1].nccl = "2.20.5";
           },
           "problem |  | NCCL differs: 2.20.5 on node 1 (b); 2.28.9 on node 0 (a) | use the same"},
          {"NCCL", [](Observed& all) { all.facts[1].nccl = "2.20.5"; },
           "problem |  | NCCL differs: 2.20.5 on node 1 (b); 2.28.9 on node 0 (a) | use the same"},
          {"the driver", [](Observed& all) { all.facts[1].driver = "550.1"; },
           "remark |  | the NVIDIA driver differs: 550.1 on node 1 (b); 570.124.06 on node 0 (a)"},
          {"the backend", [](Observed& all) { all.facts[1].backend = "gloo"; },
           "problem |  | the backend differs: gloo on node 1 (b); nccl on node 0 (a)"},
          {"a variable", [](Observed& all) { all.facts[1].variables["NCCL_ALGO"] = "Ring"; },
           "remark |  | NCCL_ALGO differs: not set on node 0 (a); Ring on node 1 (b) | set it"},
      });
  Observed own_business = TwoNodes();
  own_business.facts[0].variables = {{"NCCL_SOCKET_IFNAME", "eth"}, {"CUDA_VISIBLE_DEVICES", "0"}};
  own_business.facts[1].variables = {{"NCCL_SOCKET_IFNAME", "=eth0"}, {"NCCL_DEBUG", "INFO"}};
  EXPECT_THAT(FindingsOf(own_business), IsEmpty());
}

TEST(Findings, OfInterfaceVariables) {
  const auto with = [](const char* name, const char* value) {
    Observed observed = TwoNodes();
    observed.facts[1].variables[name] = value;
    return FindingsOf(observed);
  };
  EXPECT_THAT(with("GLOO_SOCKET_IFNAME", "eth0"), IsEmpty());
  EXPECT_THAT(with("GLOO_SOCKET_IFNAME", "eth0,lo"), IsEmpty());
  for (const char* value : {"eth", "^lo", "=eth", "eth0,"}) {
    const bool is_fine = std::string(value) == "eth" || std::string(value) == "^lo";
    EXPECT_EQ(with("NCCL_SOCKET_IFNAME", value).empty(), is_fine || std::string(value) == "eth0,")
        << value;
  }
  constexpr std::pair<const char*, const char*> kWhoTakesIt[] = {
      {"GLOO_SOCKET_IFNAME", "Gloo in Python fails on it, muster's SDK does not look"},
      {"NCCL_SOCKET_IFNAME", "NCCL fails on it, gloo does not look"},
      {"TP_SOCKET_IFNAME", "RPC in Python takes it, muster's SDK does not look"}};
  for (const auto& [name, who] : kWhoTakesIt) {
    EXPECT_THAT(Texts(with(name, "eth9")),
                ElementsAre(HasSubstr(std::string("problem | node 1 (b) | ") + name +
                                      "=eth9 names no interface that is up on this host: " + who +
                                      " | there are lo, eth0: name one")))
        << name;
  }
  EXPECT_FALSE(with("NCCL_SOCKET_IFNAME", "^lo,eth").empty());
}

TEST(Findings, OfInterfaceVariablesThatNothingUsesOnOneHostAreRemarks) {
  const auto with = [](const char* name, Observed observed) {
    observed.facts.resize(1);
    observed.world_size = 1;
    observed.facts[0].variables[name] = "eth9";
    return Texts(FindingsOf(observed));
  };
  for (const char* name : {"GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "TP_SOCKET_IFNAME"}) {
    EXPECT_THAT(with(name, TwoNodes()), ElementsAre(StartsWith("remark | node 0 (a) | "))) << name;
  }
  EXPECT_THAT(with("NCCL_SOCKET_IFNAME", TwoNodesOfGpus()),
              ElementsAre(StartsWith("problem | node 0 (a) | NCCL_SOCKET_IFNAME=eth9 names no ")));
}

TEST(Findings, OfGpus) {
  ExpectEach(
      TwoNodesOfGpus(),
      {
          {"none at all", [](Observed& all) { all.facts[1].gpus = all.facts[1].all_gpus = 0; },
           "problem | node 1 (b) | the backend is nccl, and rank 1 sees no GPU | install"},
          {"none to be seen",
           [](Observed& all) {
             all.facts[1].gpus = 0;
             all.facts[1].variables["CUDA_VISIBLE_DEVICES"] = "";
           },
           "rank 1 sees no GPU (CUDA_VISIBLE_DEVICES=) | correct"},
          {"too few", [](Observed& all) { all.facts[1].local_rank = 2; },
           "problem | node 1 (b) | has 2 workers and 2 GPUs: NCCL refuses two ranks on one"},
          {"little shared memory", [](Observed& all) { all.facts[0].shared_memory = 64 << 20; },
           "remark | node 0 (a) | /dev/shm has 64 MiB"},
      });
}

TEST(Findings, OfP2pAndInfiniband) {
  Observed fine = TwoNodesOfGpus();
  for (Facts& facts : fine.facts) {
    facts.infiniband = {"mlx5_0:1 ACTIVE", "mlx5_1:1 DOWN"};
    facts.variables = {{"NCCL_IB_HCA", "mlx5_0:1"}, {"NCCL_IB_DISABLE", "0"}};
  }
  const auto set = [](const char* name, const char* value) {
    return [=](Observed& all) {
      for (Facts& facts : all.facts) {
        if (facts.rank == 0) facts.interfaces[1].name = "eth0";
        facts.variables[name] = value;
      }
      all.facts.resize(1);
      all.world_size = 1;
    };
  };
  ExpectEach(
      fine,
      {
          {"P2P off", set("NCCL_P2P_DISABLE", "1"),
           "remark | node 0 (a) | NCCL_P2P_DISABLE=1: 2 GPUs do not copy to each other"},
          {"P2P level", set("NCCL_P2P_LEVEL", "LOC"), "NCCL_P2P_LEVEL=LOC: 2 GPUs"},
          {"InfiniBand off", set("NCCL_IB_DISABLE", "1"),
           "remark | node 0 (a) | NCCL_IB_DISABLE=1, and there is InfiniBand or RoCE: mlx5_0"},
          {"another device", set("NCCL_IB_HCA", "mlx4"),
           "problem | node 0 (a) | NCCL_IB_HCA=mlx4 names no device of this host"},
          {"no link", [](Observed& all) { all.facts[1].infiniband = {"mlx5_0:1 DOWN"}; },
           "remark | node 1 (b) | no port of InfiniBand is active: mlx5_0:1 DOWN"},
          {"locked memory", [](Observed& all) { all.facts[1].locked_memory = 64 << 10; },
           "problem | node 1 (b) | at most 64 KiB of memory may be locked"},
      });
}

TEST(Findings, OfOneHostSayNothingOfItsName) {
  Observed observed = TwoNodes();
  for (Facts& facts : observed.facts) {
    facts.host = "a";
    facts.address = "127.0.0.1";
    facts.node_addresses = {"127.0.0.1"};
    facts.host_addresses = {};
    facts.master_addresses = {"127.0.0.1"};
  }
  EXPECT_THAT(FindingsOf(observed), IsEmpty());
}

TEST(Findings, ProblemsComeFirstAndAreCounted) {
  Observed observed = TwoNodes();
  observed.facts[1].interfaces[1].mtu = 9000;
  observed.facts[1].muster = "0.2.0";
  const std::vector<Finding> findings = FindingsOf(observed);
  EXPECT_THAT(Texts(findings), ElementsAre(HasSubstr("problem"), HasSubstr("remark")));
  EXPECT_EQ(CountText(findings), "1 problem, 1 remark");
  EXPECT_TRUE(HasProblem(findings));
  EXPECT_EQ(CountText({}), "nothing found");
  EXPECT_FALSE(HasProblem({findings[1]}));
}

Unreached AtMaster(const std::string& address, int error) {
  Unreached unreached;
  unreached.what = "rank 0";
  unreached.host = "node0";
  unreached.port = 29500;
  unreached.option = "MASTER_ADDR";
  unreached.attempts = {{address, error}};
  return unreached;
}

TEST(Unreached, HasOneAdviceForEachCause) {
  const Facts own = Rank(1, 1, "b", "10.0.0.2");
  const auto texts = [&own](const Unreached& unreached) {
    return Texts(FindingsOf(own, unreached));
  };
  const struct {
    const char* address;
    int error;
    const char* text;
  } rows[] = {
      {"10.0.0.9", EHOSTUNREACH,
       "problem | node 1 (b) | cannot reach rank 0 at MASTER_ADDR node0, port 29500 (10.0.0.9): "
       "No route to host | no host answers at that address: correct MASTER_ADDR"},
      {"10.0.0.1", ETIMEDOUT, "nothing comes back: correct MASTER_ADDR, or let TCP port 29500 in"},
      {"10.0.0.1", ECONNREFUSED, "the host answers and nobody listens"},
      {"10.0.0.2", ECONNREFUSED, "that address is this host's own, and nobody listens there"},
      {"127.0.1.1", ECONNREFUSED, "that is this host itself: give an address of the other host"},
      {"10.0.0.1", EPROTO, "something listens at MASTER_ADDR node0, port 29500 (10.0.0.1), and it"},
      {"10.0.0.1", 0,
       "problem | node 1 (b) | what listens at MASTER_ADDR node0, port 29500 (10.0.0.1), takes "
       "connections and does not answer as a muster master | correct MASTER_ADDR, or end what"},
  };
  for (const auto& row : rows) {
    EXPECT_THAT(texts(AtMaster(row.address, row.error)), ElementsAre(HasSubstr(row.text)));
  }
  Unreached unknown = AtMaster("", 0);
  unknown.attempts.clear();
  unknown.resolve_problem = "Name or service not known";
  EXPECT_THAT(texts(unknown),
              ElementsAre(HasSubstr("MASTER_ADDR node0 is not known here: Name or service not "
                                    "known | correct the name")));
  Unreached here = AtMaster("10.0.0.9", EHOSTUNREACH);
  here.should_be_here = true;
  EXPECT_THAT(texts(here), ElementsAre(HasSubstr("MASTER_ADDR node0 is no address of this host, "
                                                 "where it should be | give the address by which "
                                                 "the others reach it; it has 10.0.0.2")));
}

TEST(Lonely, IsWhoHostsAMasterOfItsOwnByMistake) {
  const Facts own = Rank(1, 1, "b", "10.0.0.2");
  EXPECT_THAT(Texts(LonelyFindings(own, AtMaster("127.0.1.1", 0))),
              ElementsAre(HasSubstr("problem | node 1 (b) | MASTER_ADDR node0 is this host itself "
                                    "here (127.0.1.1): it has hosted a master")));
  Unreached meant = AtMaster("127.0.0.1", 0);
  meant.host = "localhost";
  for (const Unreached& master : {meant, AtMaster("10.0.0.1", 0)}) {
    EXPECT_THAT(Texts(LonelyFindings(own, master)),
                ElementsAre(HasSubstr("too few nodes have come to rank 0 at MASTER_ADDR")));
  }
}

}  // namespace
}  // namespace muster::check
