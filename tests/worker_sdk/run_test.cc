// State::commit(), saves in the background, and run().
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include "tests/worker_sdk/fake_agent.h"
#include "tests/worker_sdk/ranks.h"
#include "tests/worker_sdk/run_fixture.h"

namespace muster {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;

// ── Commits ─────────────────────────────────────────────────────────────────────────────────────

TEST_F(RunTest, ACommitCanBeRolledBackToAndTheSameNumbersComeAgain) {
  EXPECT_TRUE(OnRanks(2, [&](int) {
    const World world = Join();
    world.seed(1);
    Training run(world, {});
    EXPECT_FALSE(run.state.rollback());
    run.TrainTo(1);  // the first commit is remembered
    const at::Tensor after_one = Flat(*run.net).clone();
    run.Step();
    const at::Tensor after_two = Flat(*run.net).clone();
    EXPECT_TRUE(run.state.rollback());
    EXPECT_EQ(run.step, 1);
    EXPECT_EQ(run.state.commits(), 1);
    EXPECT_TRUE(Flat(*run.net).equal(after_one));
    run.Step();
    EXPECT_TRUE(Flat(*run.net).equal(after_two));
    EXPECT_EQ(run.sampler.position(), 8u);
    return 0;
  }));
}

TEST_F(RunTest, CommitsSaveAsOftenAsWasAskedForAndCountOnAfterARestart) {
  EXPECT_TRUE(OnRanks(2, [&](int) {
    const World world = Join();
    Training run(world, InFile().every(2).keep(3).remember(false));
    run.TrainTo(7);
    world.barrier();
    Training resumed(world, InFile());
    EXPECT_TRUE(resumed.state.load());
    EXPECT_EQ(resumed.step, 6);
    EXPECT_EQ(resumed.state.commits(), 6);
    EXPECT_TRUE(fs::exists(file_.string() + ".previous.2"));
    EXPECT_FALSE(run.state.rollback());
    return 0;
  }));
}

TEST_F(RunTest, AnotherNumberOfRanksGoesOnWithAllButTheRandomNumbers) {
  EXPECT_TRUE(OnRanks(2, [&](int) {
    const World world = Join();
    Training run(world, InFile());
    run.TrainTo(4);
    run.state.save();
    return 0;
  }));
  for (const int ranks : {1, 3}) {
    EXPECT_TRUE(OnRanks(ranks, [&](int) {
      const World world = Join();
      Training run(world, InFile());
      world.seed(5);
      EXPECT_TRUE(run.state.load());
      const at::Tensor next = at::rand({3});
      world.seed(5);
      EXPECT_TRUE(next.equal(at::rand({3}))) << "there is no rank whose numbers these would be";
      EXPECT_EQ(run.step, 4);
      EXPECT_EQ(run.state.commits(), 4);
      EXPECT_EQ(run.scaler.current_scale(), 16);
      EXPECT_EQ(run.sampler.position(), 16u);
      run.TrainTo(6);
      EXPECT_EQ(run.ddp.max_parameter_difference(), 0);
      EXPECT_EQ(run.scaler.current_scale(), 32);
      return 0;
    }));
  }
}

TEST_F(RunTest, OptionsThatMakeNoSenseAreRefused) {
  EXPECT_TRUE(OnRanks(1, [&](int) {
    const World world = Join();
    EXPECT_THROW(State(world, CheckpointOptions().keep(0)), Error);
    EXPECT_THROW(State(world, CheckpointOptions().every(5)), Error);
    EXPECT_THROW(State(world, InFile().every(-1)), Error);
    EXPECT_THROW(State(world).save(), Error);
    EXPECT_THROW(State(world).load(), Error);
    return 0;
  }));
}

// ── Saves in the background ─────────────────────────────────────────────────────────────────────

TEST_F(RunTest, ASaveInTheBackgroundHoldsWhatWasThereWhenItBegan) {
  EXPECT_TRUE(OnRanks(2, [&](int) {
    const World world = Join();
    const at::Tensor end = Uninterrupted(world, 9);
    world.seed(1);
    Training run(world, InFile().async(true));
    run.TrainTo(5);
    run.state.save();
    run.TrainTo(8);  // meanwhile
    run.state.wait();
    Training resumed(world, InFile());
    EXPECT_TRUE(resumed.state.load());
    EXPECT_EQ(resumed.step, 5);
    resumed.TrainTo(9);
    EXPECT_TRUE(Flat(*resumed.net).equal(end));
    return 0;
  }));
}

TEST_F(RunTest, AFailureInTheBackgroundSurfacesOnEveryRankAtTheNextSaveWaitOrCommit) {
  EXPECT_TRUE(OnRanks(2, [&](int rank) {
    const World world = Join();
    Training run(world, InFile().async(true));
    run.TrainTo(1);
    run.state.save();
    run.state.wait();
    if (rank == 0) fs::create_symlink("/dev/full", file_.string() + ".tmp.0.0");
    const auto surfaces = [&](const std::function<void()>& call) {
      if (rank == 0 && !fs::exists(fs::symlink_status(file_.string() + ".tmp.0.0"))) {
        fs::create_symlink("/dev/full", file_.string() + ".tmp.0.0");
      }
      run.state.save();
      try {
        call();
        ADD_FAILURE() << "no error";
      } catch (const CheckpointError& error) {
        EXPECT_TRUE(error.everywhere);
        EXPECT_THAT(error.what(), HasSubstr("No space left on device"));
      }
    };
    surfaces([&] { run.state.wait(); });
    surfaces([&] { run.state.save(); });
    surfaces([&] {
      for (int i = 0; i < 100'000; ++i) run.state.commit();
    });
    EXPECT_EQ(StepIn(world, InFile()), 1) << "the last good one is there";
    return 0;
  }));
}

// ── run() ───────────────────────────────────────────────────────────────────────────────────────

// A rank's agent, which this process plays as well.
struct WithAgent {
  explicit WithAgent(int rank) : agent(rank) {
    setenv("MUSTER_SOCKET", agent.path().c_str(), 1);
    world = std::make_unique<World>(Join());
    agent.Accept();
  }
  FakeAgent agent;
  std::unique_ptr<World> world;
};

TEST_F(RunTest, TellsReadyAndStepsAndSavesItsEnd) {
  EXPECT_TRUE(OnRanks(2, [&](int rank) {
    WithAgent self(rank);
    Training training(*self.world, InFile());
    EXPECT_TRUE(run(*self.world, training.state, [&] { training.TrainTo(3); }));
    const auto heard = self.agent.Hear();
    const std::vector<std::string> lines = {"READY=1", "STEP=1", "STEP=2", "STEP=3"};
    EXPECT_EQ(heard.size(), lines.size() + (rank == 0 ? 1 : 0)) << "the CHECKPOINT of rank 0";
    for (size_t i = 0; i < std::min(lines.size(), heard.size()); ++i) {
      EXPECT_EQ(heard[i], lines[i]);
    }
    int calls = 0;
    Training again(*self.world, InFile());
    EXPECT_TRUE(run(*self.world, again.state, [&] {
      ++calls;
      EXPECT_EQ(again.step, 3);
    }));
    EXPECT_EQ(calls, 1);
    return 0;
  }));
}

TEST_F(RunTest, ACopySavedElsewhereIsNotTakenForTheRunsOwnEnd) {
  EXPECT_TRUE(OnRanks(2, [&](int) {
    const World world = Join();
    Training training(world, InFile());
    EXPECT_TRUE(run(world, training.state, [&] {
      training.TrainTo(3);
      training.state.save(folder_ / "best.ckpt");
    }));
    EXPECT_EQ(StepIn(world, InFile()), 3);
    return 0;
  }));
}

TEST_F(RunTest, ADrainOfOneRankEndsAllAtOneCommitSavedAndTheRestIsTrainedLater) {
  EXPECT_TRUE(OnRanks(3, [&](int rank) {
    WithAgent self(rank);
    const World& world = *self.world;
    world.seed(1);
    Training training(world, InFile());
    const bool finished = run(world, training.state, [&] {
      while (training.step < 400) {
        if (rank == 1 && training.step == 4) self.agent.Say("DRAIN=1");
        training.Step();
        try {
          training.state.commit();
        } catch (const std::exception&) {
          ADD_FAILURE() << "a drain must not look like an error";
        }
      }
    });
    EXPECT_FALSE(finished);
    EXPECT_TRUE(training.state.draining());
    EXPECT_GE(training.step, 5);
    EXPECT_LT(training.step, 400);
    const at::Tensor steps = world.all_gather(at::tensor({training.step}));
    EXPECT_TRUE(steps.eq(training.step).all().item<bool>()) << steps;
    return 0;
  }));
  EXPECT_TRUE(OnRanks(3, [&](int) {
    const World world = Join();
    const at::Tensor end = Uninterrupted(world, 400);
    Training rest(world, InFile());
    EXPECT_TRUE(run(world, rest.state, [&] {
      EXPECT_GE(rest.step, 5);
      rest.TrainTo(400);
    }));
    // Although the first step after a start has other buckets: shared memory adds up by rank.
    EXPECT_TRUE(Flat(*rest.net).equal(end));
    return 0;
  }));
}

struct Failure {
  const char* where;
  std::function<void(Training&)> fail;
};

TEST_F(RunTest, ARankThatThrowsAnywhereIsNamedByTheOthersAndTheLastCommitIsSaved) {
  const Failure table[] = {
      {"in its data", [](Training&) { throw std::runtime_error("bad sample 17"); }},
      {"in forward",
       [](Training& t) {
         t.ddp(at::zeros({1, 5}));
       }},
      {"in backward", [](Training& t) { t.ddp.backward(at::zeros({1})); }},
      {"in step",
       [](Training& t) {
         t.optimizer.param_groups()[0].params().push_back(at::zeros({2}));
         throw std::runtime_error("bad step");
       }},
      {"no exception", [](Training&) { throw 42; }},
  };
  for (const Failure& failure : table) {
    for (const int culprit : {0, 1}) {
      fs::remove_all(folder_);
      EXPECT_TRUE(OnRanks(2, [&](int rank) {
        const World world = Join();
        Training training(world, InFile());
        try {
          run(world, training.state, [&] {
            training.TrainTo(1);
            if (rank == culprit) failure.fail(training);
            training.TrainTo(100);
          });
          ADD_FAILURE() << "no error";
        } catch (const PeerLost& error) {
          EXPECT_NE(rank, culprit) << error.what();
          EXPECT_THAT(error.ranks, ElementsAre(culprit));
          EXPECT_THAT(error.what(), HasSubstr("rank " + std::to_string(culprit) + " left: "));
        } catch (...) {
          EXPECT_EQ(rank, culprit);
        }
        if (rank == 0) {
          EXPECT_TRUE(fs::exists(file_));
        }
        return 0;
      })) << failure.where;
    }
  }
}

TEST_F(RunTest, ASaveThatFailsIsTheSameErrorOnEveryRankAndNobodyIsCalledLost) {
  EXPECT_TRUE(OnRanks(2, [&](int rank) {
    const World world = Join();
    Training training(world, InFile().every(3));
    if (rank == 0) fs::create_symlink("/dev/full", file_.string() + ".tmp.0.0");
    world.barrier();
    try {
      run(world, training.state, [&] { training.TrainTo(10); });
      ADD_FAILURE() << "no error";
    } catch (const CheckpointError& error) {
      EXPECT_TRUE(error.everywhere);
      EXPECT_EQ(training.step, 3);
    }
    world.barrier();  // the group is whole
    return 0;
  }));
}

TEST_F(RunTest, ARankThatHangsIsNamedByTheOthers) {
  int done[2];
  ASSERT_EQ(pipe(done), 0);
  EXPECT_TRUE(OnRanks(3, [&](int rank) {
    const World world = Join(std::chrono::seconds(3));
    Training training(world, InFile());
    char byte = 0;
    try {
      run(world, training.state, [&] {
        training.TrainTo(2);
        if (rank == 1) {
          EXPECT_EQ(read(done[0], &byte, 1), 1);
        }
        training.TrainTo(10);
      });
      ADD_FAILURE() << "no error";
    } catch (const Timeout& error) {
      EXPECT_THAT(error.missing, ElementsAre(1));
    } catch (const PeerLost& error) {  // another one gave up a moment earlier
      if (rank != 1) {
        EXPECT_THAT(error.ranks, ElementsAre(1));
      }
    }
    if (rank == 0) {
      EXPECT_EQ(write(done[1], &byte, 1), 1);
    }
    return 0;
  }));
  close(done[0]);
  close(done[1]);
}

// ── ABORT ───────────────────────────────────────────────────────────────────────────────────────

TEST_F(RunTest, AnAbortOfTheAgentEndsACollectiveWithAPeerThatHangs) {
  int done[2];
  ASSERT_EQ(pipe(done), 0);
  EXPECT_TRUE(OnRanks(2, [&](int rank) {
    WithAgent self(rank);
    const World& world = *self.world;
    const World pair = world.subgroup({0, 1});
    pair.barrier();  // it is whole
    char byte = 0;
    if (rank == 1) {
      EXPECT_EQ(read(done[0], &byte, 1), 1);
      return 0;
    }
    const Pending stuck = world.all_reduce_async(at::ones({1000}));
    const Pending pair_stuck = pair.all_reduce_async(at::ones({10}));
    self.agent.Say("ABORT=" + std::to_string(world.generation()));
    const auto begin = std::chrono::steady_clock::now();
    for (const Pending& one : {stuck, pair_stuck}) {
      try {
        one.wait();
        ADD_FAILURE() << "no error";
      } catch (const PeerLost& error) {
        EXPECT_THAT(error.ranks, ElementsAre(1));
        EXPECT_THAT(error.what(), HasSubstr("the agent says that a peer of this generation"));
      }
    }
    std::printf("left both groups %ld ms after the ABORT\n",
                static_cast<long>(std::chrono::duration_cast<milliseconds>(
                                      std::chrono::steady_clock::now() - begin)
                                      .count()));
    EXPECT_THROW(world.barrier(), PeerLost);
    EXPECT_EQ(write(done[1], &byte, 1), 1);
    return 0;
  }));
  close(done[0]);
  close(done[1]);
}

TEST_F(RunTest, AnAbortLeavesABackwardSavesTheLastCommitAndOfAPastGenerationChangesNothing) {
  EXPECT_TRUE(OnRanks(2,
                      [&](int rank) {
                        WithAgent self(rank);
                        Training training(*self.world, InFile());
                        try {
                          run(*self.world, training.state, [&] {
                            self.agent.Say("ABORT=4");
                            training.TrainTo(20);
                            self.agent.Say("ABORT=5");
                            training.TrainTo(1'000'000);
                          });
                          ADD_FAILURE() << "no error";
                        } catch (const PeerLost&) {
                        }
                        EXPECT_GE(training.step, 20);
                        if (rank == 0) {
                          EXPECT_TRUE(fs::exists(file_));
                        }
                        return 0;
                      },
                      {{"MUSTER_GENERATION", "5"}}));
}

}  // namespace
}  // namespace muster
