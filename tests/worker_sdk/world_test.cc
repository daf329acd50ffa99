#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>

#include "base/unique_fd.h"
#include "tests/worker_sdk/nets.h"
#include "tests/worker_sdk/ranks.h"

namespace muster {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;

// The port of a listener on all addresses that accepts in the kernel and says nothing.
int ListenAnywhere(UniqueFd* listener) {
  *listener = UniqueFd(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  socklen_t size = sizeof address;
  EXPECT_EQ(bind(listener->get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(listen(listener->get(), 1), 0);
  EXPECT_EQ(getsockname(listener->get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  return ntohs(address.sin6_port);
}

TEST(World, WithoutALauncherIsAWorldOfOneThatCanDoAllCollectives) {
  EXPECT_TRUE(OnRanks(1, [](int) {
    for (const char* name :
         {"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) {
      unsetenv(name);
    }
    const World world = init();
    EXPECT_EQ(world.size(), 1);
    EXPECT_TRUE(world.leader());
    EXPECT_EQ(world.backend(), "gloo");
    EXPECT_FALSE(world.agent().connected());
    const at::Tensor tensor = at::ones({3});
    world.all_reduce(tensor, Op::mean);
    world.broadcast(tensor);
    world.barrier();
    EXPECT_EQ(world.all_gather(tensor).sizes(), at::IntArrayRef({1, 3}));
    return 0;
  }));
}

TEST(World, CollectivesGiveEveryRankTheRightResult) {
  EXPECT_TRUE(OnRanks(4, [](int rank) {
    const World world = init();
    EXPECT_EQ(world.rank(), rank);
    EXPECT_EQ(world.local_size(), 4);
    const auto reduced = [&](Op op, at::ScalarType type) {
      const at::Tensor tensor = at::full({2}, rank + 1, type);
      world.all_reduce(tensor, op);
      return tensor[1].item<double>();
    };
    for (const auto type :
         {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kInt, at::kLong}) {
      EXPECT_EQ(reduced(Op::sum, type), 10) << type;
      EXPECT_EQ(reduced(Op::max, type), 4) << type;
      EXPECT_EQ(reduced(Op::min, type), 1) << type;
      EXPECT_EQ(reduced(Op::mean, type), at::isIntegralType(type, false) ? 2 : 2.5) << type;
    }
    const at::Tensor columns = at::full({3, 2}, rank).t();  // not contiguous
    world.all_reduce(columns);
    EXPECT_EQ(columns.sum().item<float>(), 36);
    const at::Tensor from_two = at::full({2}, rank);
    world.broadcast(from_two, 2);
    EXPECT_EQ(from_two[0].item<int>(), 2);
    const at::Tensor all = world.all_gather(at::full({1}, rank));
    EXPECT_TRUE(all.flatten().equal(at::tensor({0, 1, 2, 3}, all.options())));
    at::Tensor leaf = at::ones({2}).requires_grad_();
    world.all_reduce(leaf);
    EXPECT_EQ(leaf[0].item<float>(), 4);
    EXPECT_TRUE(leaf.requires_grad());
    return 0;
  }));
}

TEST(World, SeedsDifferByRank) {
  EXPECT_TRUE(OnRanks(2, [](int) {
    const World world = init();
    world.seed(42);
    const at::Tensor both = world.all_gather(at::rand({4}));
    EXPECT_GT(Distance(both[0], both[1]), 0);
    at::manual_seed(42);
    EXPECT_EQ(Distance(both[0], at::rand({4})), 0);
    return 0;
  }));
}

TEST(World, WhoDoesNotComeIsNamedByTheDeadline) {
  EXPECT_TRUE(OnRanks(2,
                      [](int) {
                        try {
                          init(InitOptions().init_timeout(milliseconds(300)));
                          ADD_FAILURE() << "no error";
                        } catch (const Timeout& error) {
                          EXPECT_EQ(error.waited, milliseconds(300));
                          EXPECT_THAT(error.missing, ElementsAre(2));
                          EXPECT_THAT(error.what(), HasSubstr("for rank 2 of 3 at 127.0.0.1:"));
                        } catch (const PeerLost& error) {
                          // Rank 0 gave up a moment earlier and took the store along.
                          EXPECT_THAT(error.ranks, ElementsAre(0));
                        }
                        return 0;
                      },
                      {{"WORLD_SIZE", "3"}}));
}

TEST(World, WithoutRankZeroTheErrorSaysSo) {
  EXPECT_TRUE(OnRanks(2, [](int rank) {
    if (rank == 0) return 0;
    try {
      init(InitOptions().init_timeout(milliseconds(200)));
      ADD_FAILURE() << "no error";
    } catch (const Timeout& error) {
      EXPECT_THAT(error.missing, ElementsAre(0));
      EXPECT_THAT(error.what(), HasSubstr("for rank 0 at 127.0.0.1:"));
    }
    return 0;
  }));
}

TEST(World, TwoWorkersOfOneRankAreToldApart) {
  EXPECT_TRUE(OnRanks(3, [](int rank) {
    if (rank == 2) setenv("RANK", "1", 1);
    try {
      init(InitOptions().init_timeout(std::chrono::seconds(2)));
      // The one that came first waits for a third until the deadline, hence never comes here.
      ADD_FAILURE() << "no error";
    } catch (const Mismatch& error) {
      EXPECT_THAT(error.what(), HasSubstr("have RANK=1"));
    } catch (const Timeout& error) {
      EXPECT_THAT(error.missing, ElementsAre(2));
    } catch (const PeerLost&) {
    }
    return 0;
  }));
}

TEST(World, WhatIsWrongWithTheSettingsIsOneTypedError) {
  EXPECT_TRUE(OnRanks(1, [](int) {
    EXPECT_THROW(init(InitOptions().backend("smoke-signals")), Error);
    EXPECT_THROW(init(InitOptions().interface("nosuchif0")), Error);
    unsetenv("RANK");
    EXPECT_THROW(init(), EnvironmentError);
    return 0;
  }));
}

TEST(World, ATakenPortIsNamed) {
  EXPECT_TRUE(OnRanks(1, [](int) {
    UniqueFd taken;
    Identity self = identity();
    self.world_size = 2;
    self.master_port = ListenAnywhere(&taken);
    try {
      init(self, InitOptions());
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("cannot open the store at 127.0.0.1:"));
    }
    return 0;
  }));
}

TEST(World, WhatAcceptsAndSaysNothingIsATimeoutThatNamesThePort) {
  EXPECT_TRUE(OnRanks(1, [](int) {
    UniqueFd silent;
    Identity self = identity();
    self.rank = 1;
    self.world_size = 2;
    self.master_port = ListenAnywhere(&silent);
    try {
      init(self, InitOptions().init_timeout(milliseconds(200)));
      ADD_FAILURE() << "no error";
    } catch (const Timeout& error) {
      EXPECT_THAT(error.missing, ElementsAre(0));
      EXPECT_THAT(error.what(), HasSubstr("is MASTER_PORT another program's?"));
    }
    return 0;
  }));
}

TEST(World, NcclWithoutItsLibraryOrAGpuIsATypedError) {
  EXPECT_TRUE(OnRanks(1, [](int) {
    const char* component = std::getenv("MUSTER_TEST_NCCL");
    setenv("MUSTER_NCCL_LIBRARY", "/nonexistent/libmuster_nccl.so", 1);
    try {
      init(InitOptions().backend("nccl"));
      ADD_FAILURE() << "no error";
    } catch (const BackendUnavailable& error) {
      EXPECT_THAT(error.what(), HasSubstr("cannot load the NCCL backend: /nonexistent/"));
    }
    if (component == nullptr || fs::exists("/dev/nvidia0")) return 0;
    setenv("MUSTER_NCCL_LIBRARY", component, 1);
    try {
      init(InitOptions().backend("nccl"));
      ADD_FAILURE() << "no error";
    } catch (const BackendUnavailable& error) {
      EXPECT_THAT(error.what(), HasSubstr("the NCCL backend: "));
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    }
    return 0;
  }));
}

TEST(World, ACpuTrainerLoadsNoCudaLibraryButTheTwoThatLibtorchCpuNames) {
  EXPECT_TRUE(OnRanks(1, [](int) {
    init();
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
      for (const char* library : {"libtorch_cuda", "libnccl", "libcublas", "libcudnn", "libgrpc",
                                  "libprotobuf", "libtorch_python"}) {
        EXPECT_EQ(line.find(library), std::string::npos) << line;
      }
    }
    return 0;
  }));
}

}  // namespace
}  // namespace muster
