#include "agent/numa_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using CpuLists = std::vector<std::vector<int>>;

// `sockets` x `nodes` x `cores`, each core with two CPUs: c and c + all cores; two cores share an
// L3 cache.
Topology Machine(int sockets, int nodes, int cores) {
  const int all = sockets * nodes * cores;
  Topology topology;
  for (int id = 0; id < 2 * all; ++id) {
    const int core = id % all;
    topology.cpus.push_back({id, core, core / 2 * 2, core / cores, core / (cores * nodes)});
  }
  return topology;
}

CpuLists Planned(NumaBinding binding, const Topology& topology, std::vector<int> gpu_nodes,
                 int slots) {
  auto plan = PlanCpus(binding, topology, gpu_nodes, slots);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? *plan : CpuLists();
}

TEST(NumaPlan, NoBindingIsAnEmptyListForEach) {
  EXPECT_EQ(Planned(NumaBinding::kNone, {}, {}, 2), CpuLists(2));
}

TEST(NumaPlan, NodeIsAllCpusOfTheGpusNumaNode) {
  EXPECT_THAT(
      Planned(NumaBinding::kNode, Machine(2, 1, 2), {1, 1, 0}, 3),
      ElementsAre(ElementsAre(2, 3, 6, 7), ElementsAre(2, 3, 6, 7), ElementsAre(0, 1, 4, 5)));
}

TEST(NumaPlan, SocketIsAllCpusOfTheSocketOfThatNode) {
  EXPECT_THAT(Planned(NumaBinding::kSocket, Machine(2, 2, 1), {3}, 1),
              ElementsAre(ElementsAre(2, 3, 6, 7)));
  Topology untold = Machine(2, 1, 1);
  for (Cpu& cpu : untold.cpus) cpu.socket = -1;
  EXPECT_THAT(Planned(NumaBinding::kSocket, untold, {1}, 1), ElementsAre(ElementsAre(1, 3)));
}

TEST(NumaPlan, ExclusiveSharesWholeCoresAndLowerRanksGetTheRest) {
  EXPECT_THAT(Planned(NumaBinding::kExclusive, Machine(1, 1, 5), {0, 0}, 2),
              ElementsAre(ElementsAre(0, 1, 2, 5, 6, 7), ElementsAre(3, 4, 8, 9)));
}

TEST(NumaPlan, ExclusiveNeedsACoreForEachWorker) {
  auto plan = PlanCpus(NumaBinding::kExclusive, Machine(1, 1, 2), {0, 0, 0}, 3);
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(plan.status().message()), HasSubstr("2 cores for 3 workers"));
}

TEST(NumaPlan, CoreComplexGoesRoundTheCachesTheLargestFirst) {
  Topology machine = Machine(1, 1, 4);
  std::erase_if(machine.cpus, [](const Cpu& cpu) { return cpu.id == 4; });
  EXPECT_THAT(Planned(NumaBinding::kCoreComplex, machine, {0, 0, 0}, 3),
              ElementsAre(ElementsAre(2, 3, 6, 7), ElementsAre(0, 1, 5), ElementsAre(2, 3, 6, 7)));
}

TEST(NumaPlan, MoreWorkersThanGpusBeginAgain) {
  EXPECT_THAT(Planned(NumaBinding::kNode, Machine(2, 1, 1), {1, 0}, 3),
              ElementsAre(ElementsAre(1, 3), ElementsAre(0, 2), ElementsAre(1, 3)));
}

TEST(NumaPlan, WithoutAKnownGpuNodeTheRanksGoRoundTheNodes) {
  for (const std::vector<int>& gpus : {std::vector<int>{}, {-1, -1, -1}, {7, 7, 7}}) {
    EXPECT_THAT(Planned(NumaBinding::kNode, Machine(2, 1, 1), gpus, 3),
                ElementsAre(ElementsAre(0, 2), ElementsAre(1, 3), ElementsAre(0, 2)));
  }
}

TEST(NumaPlan, WithoutACpuThereIsAnError) {
  EXPECT_EQ(PlanCpus(NumaBinding::kNode, {}, {}, 1).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

// Whatever the machine: no CPU that is not there, no empty list, and exclusive means exclusive.
TEST(NumaPlan, EveryWorkerGetsCpusAndExclusiveOnesAreDisjoint) {
  for (int sockets = 1; sockets <= 2; ++sockets) {
    for (int nodes = 1; nodes <= 3; ++nodes) {
      for (int cores = 1; cores <= 5; ++cores) {
        const Topology machine = Machine(sockets, nodes, cores);
        for (int slots = 1; slots <= sockets * nodes * cores; ++slots) {
          for (NumaBinding binding : {NumaBinding::kNode, NumaBinding::kSocket,
                                      NumaBinding::kExclusive, NumaBinding::kCoreComplex}) {
            std::set<int> used;
            size_t total = 0;
            for (const std::vector<int>& cpus : Planned(binding, machine, {}, slots)) {
              ASSERT_FALSE(cpus.empty());
              ASSERT_LT(cpus.back(), static_cast<int>(machine.cpus.size()));
              used.insert(cpus.begin(), cpus.end());
              total += cpus.size();
            }
            const bool exclusive = binding == NumaBinding::kExclusive;
            ASSERT_TRUE(!exclusive || used.size() == total);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace muster
