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
using torch::optim::SGD;
using torch::optim::SGDOptions;

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

// ── State ───────────────────────────────────────────────────────────────────────────────────────

class StateTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("state." + std::to_string(getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    file_ = folder_ / "run.ckpt";
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path folder_, file_;
};

// A run that uses all that State keeps, random numbers included.
struct Training {
  explicit Training(const World& world)
      : net(std::make_shared<SmallNet>()),
        ddp(net, world),
        optimizer(net->parameters(), SGDOptions(0.1).momentum(0.9)),
        sampler(64, world),
        state(world) {
    state.add("net", *net).add("optimizer", optimizer).add("sampler", sampler).add("step", step);
    state.add("rate", rate).add("flag", flag);
  }
  void Train(int64_t steps, int rank) {
    for (int64_t end = step + steps; step < end; ++step) {
      const Batch batch = BatchOf(step, rank);
      ddp.zero_grad();
      ddp.backward(Loss(ddp(batch.x + at::rand_like(batch.x)), batch.y));
      optimizer.step();
      sampler.consumed(2);
    }
  }
  std::shared_ptr<SmallNet> net;
  DistributedDataParallel<SmallNet> ddp;
  SGD optimizer;
  DistributedSampler sampler;
  State state;
  int64_t step = 0;
  double rate = 0.5;
  bool flag = false;
};

TEST_F(StateTest, AResumedRunEndsBitForBitAsAnUninterruptedOne) {
  EXPECT_TRUE(OnRanks(2, [&](int rank) {
    const World world = init();
    world.seed(1);
    Training whole(world);
    whole.Train(3, rank);
    whole.rate = 0.25;
    whole.flag = true;
    whole.state.save(file_);
    whole.Train(4, rank);
    const at::Tensor next = at::rand({2});

    world.seed(99);
    Training resumed(world);
    const Loaded loaded = resumed.state.load(file_);
    EXPECT_TRUE(loaded);
    EXPECT_EQ(loaded.file, file_);
    EXPECT_EQ(loaded.note, "");
    EXPECT_EQ(resumed.step, 3);
    EXPECT_EQ(resumed.rate, 0.25);
    EXPECT_TRUE(resumed.flag);
    resumed.Train(4, rank);
    EXPECT_TRUE(Flat(*resumed.net).equal(Flat(*whole.net)));
    EXPECT_EQ(resumed.sampler.position(), whole.sampler.position());
    EXPECT_TRUE(at::rand({2}).equal(next)) << "the random numbers go on, too";
    return 0;
  }));
}

TEST_F(StateTest, NothingThereIsNoErrorAndChangesNothing) {
  EXPECT_TRUE(OnRanks(2, [&](int) {
    const World world = init();
    Training run(world);
    EXPECT_FALSE(run.state.load(file_));
    EXPECT_EQ(run.step, 0);
    return 0;
  }));
}

TEST_F(StateTest, ATruncatedFileFallsBackToTheOneBeforeOnEveryRank) {
  EXPECT_TRUE(OnRanks(2, [&](int rank) {
    const World world = init();
    Training run(world);
    for (int64_t i = 1; i <= 2; ++i) {
      run.step = i;
      run.state.save(file_);
    }
    if (rank == 0) fs::resize_file(file_, fs::file_size(file_) / 2);
    const Loaded loaded = run.state.load(file_);
    EXPECT_EQ(run.step, 1);
    EXPECT_THAT(loaded.note, HasSubstr("ends at byte"));
    if (rank == 0) fs::resize_file(loaded.file, 100);
    world.barrier();
    EXPECT_THROW(run.state.load(file_), CheckpointCorrupt);
    EXPECT_EQ(run.step, 1);
    return 0;
  }));
}

TEST_F(StateTest, ACheckpointOfAnotherProgramIsRefusedByNameAndChangesNothing) {
  EXPECT_TRUE(OnRanks(2, [&](int rank) {
    const World world = init();
    Training run(world);
    run.step = 5;
    run.state.save(file_);
    const auto refused = [&](State& state) {
      try {
        state.load(file_);
        ADD_FAILURE() << "no error";
      } catch (const CheckpointError& error) {
        return std::string(error.what());
      }
      return std::string();
    };
    int64_t step = 0;
    State fewer(world);
    fewer.add("step", step);
    EXPECT_THAT(refused(fewer), HasSubstr("net: the program has step in its place"));
    torch::nn::Linear other(3, 3);
    State shapes(world);
    shapes.add("net", *other);
    EXPECT_THAT(refused(shapes), HasSubstr("net: the program has weight where"));
    // Different on one rank only: no rank may go on.
    DistributedSampler sampler(rank == 1 ? 65 : 64, world);
    State uneven(world);
    SGD optimizer(run.net->parameters(), SGDOptions(0.1));
    double rate = 0;
    bool flag = false;
    uneven.add("net", *run.net).add("optimizer", optimizer).add("sampler", sampler);
    uneven.add("step", step).add("rate", rate).add("flag", flag);
    EXPECT_THAT(refused(uneven), HasSubstr(rank == 1 ? "data set of size 64, now it has 65"
                                                     : "rank 1 cannot apply the checkpoint"));
    EXPECT_EQ(step, 0);
    EXPECT_THROW(uneven.add("net", step), Error);
    return 0;
  }));
}

TEST_F(StateTest, ASaveByAPastGenerationIsRefusedOnEveryRank) {
  const auto save = [&](int) {
    const World world = init();
    int64_t step = 0;
    State state(world);
    state.add("step", step);
    state.save(file_);
    return 0;
  };
  EXPECT_TRUE(OnRanks(2, save, {{"MUSTER_GENERATION", "4"}}));
  EXPECT_TRUE(OnRanks(2,
                      [&](int rank) {
                        EXPECT_THROW(save(rank), StaleGeneration);
                        return 0;
                      },
                      {{"MUSTER_GENERATION", "3"}}));
}

TEST_F(StateTest, AFolderThatCannotBeWrittenIsAnErrorOnEveryRank) {
  EXPECT_TRUE(OnRanks(2, [&](int) {
    const World world = init();
    State state(world);
    EXPECT_THROW(state.save("/proc/nowhere/run.ckpt"), CheckpointError);
    world.barrier();
    return 0;
  }));
}

TEST_F(StateTest, MoreRanksGoOnFromTheSameFile) {
  EXPECT_TRUE(OnRanks(1, [&](int) {
    const World world = init();
    Training run(world);
    run.Train(2, 0);
    run.state.save(file_);
    return 0;
  }));
  EXPECT_TRUE(OnRanks(3, [&](int rank) {
    const World world = init();
    Training run(world);
    EXPECT_TRUE(run.state.load(file_));
    EXPECT_EQ(run.step, 2);
    EXPECT_EQ(run.sampler.position(), 4u);
    EXPECT_EQ(run.sampler.remaining(), 20u);
    run.Train(1, rank);
    EXPECT_EQ(run.ddp.max_parameter_difference(), 0);
    return 0;
  }));
}

}  // namespace
}  // namespace muster
