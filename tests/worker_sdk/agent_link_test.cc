#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <muster/worker.h>

#include <future>

#include "tests/worker_sdk/fake_agent.h"

namespace muster {
namespace {

using testing::Each;
using testing::ElementsAre;

TEST(AgentLink, SaysEachThingAsOneDatagram) {
  FakeAgent agent;
  AgentLink link(agent.path());
  agent.Accept();
  EXPECT_TRUE(link.connected());
  link.ready();
  link.step(1200);
  link.checkpoint("/ckpt/a b");
  link.status("epoch 3");
  link.error("it broke");
  link.quiesced(4);
  EXPECT_THAT(agent.Hear(), ElementsAre("READY=1", "STEP=1200", "CHECKPOINT=/ckpt/a b",
                                        "STATUS=epoch 3", "ERROR=it broke", "QUIESCED=4"));
}

TEST(AgentLink, ATextCannotSmuggleInAnotherKey) {
  FakeAgent agent;
  AgentLink link(agent.path());
  agent.Accept();
  link.status("fine\nREADY=1");
  link.error(std::string(100'000, 'x'));
  const auto heard = agent.Hear();
  ASSERT_EQ(heard.size(), 2u);
  EXPECT_EQ(heard[0], "STATUS=fine READY=1");
  EXPECT_EQ(heard[1].size(), 6u + 32 * 1024);
}

TEST(AgentLink, HearsWhatTheAgentSays) {
  FakeAgent agent;
  AgentLink link(agent.path());
  agent.Accept();
  EXPECT_FALSE(link.drain_requested());
  EXPECT_EQ(link.aborted_generation(), std::nullopt);
  agent.Say("ABORT=3");
  agent.Say("UNKNOWN=1\nDRAIN=1\nABORT=2\n");
  agent.Say("MEMBERS=4\nRANK=0\nWORLD_SIZE=2");
  agent.Say("ABORT=junk");
  EXPECT_TRUE(link.drain_requested());
  EXPECT_EQ(link.aborted_generation(), 3);
  EXPECT_EQ(link.members(), "MEMBERS=4\nRANK=0\nWORLD_SIZE=2");
  EXPECT_TRUE(link.connected());
}

TEST(AgentLink, ABusyAgentCostsStepsButNeverReadyCheckpointOrError) {
  FakeAgent agent;
  AgentLink link(agent.path());
  agent.Accept();
  constexpr int kMany = 20'000;
  for (int i = 0; i < kMany; ++i) link.step(i);
  link.ready();
  link.checkpoint("old");
  link.checkpoint("new");
  link.error("cause");
  const auto before = agent.Hear();
  EXPECT_LT(before.size(), static_cast<size_t>(kMany));
  EXPECT_THAT(before, Each(testing::StartsWith("STEP=")));
  link.step(kMany);
  EXPECT_THAT(agent.Hear(), ElementsAre("READY=1", "CHECKPOINT=new", "ERROR=cause", "STEP=20000"));
}

TEST(AgentLink, WithoutAnAgentEverythingIsANoOp) {
  for (const std::string& path : {std::string(), std::string("/nonexistent/socket"),
                                  std::string(200, 'x'), testing::TempDir()}) {
    AgentLink link(path);
    EXPECT_FALSE(link.connected()) << path;
    link.ready();
    link.step(1);
    link.error("nobody hears");
    EXPECT_FALSE(link.drain_requested());
  }
}

TEST(AgentLink, AnAgentThatGoesIsNoticedAndItsLastWordIsKept) {
  FakeAgent agent;
  AgentLink link(agent.path());
  agent.Accept();
  agent.Say("DRAIN=1");
  agent.HangUp();
  link.ready();
  EXPECT_FALSE(link.connected());
  EXPECT_TRUE(link.drain_requested());
  link.step(2);
}

TEST(AgentLink, AnAbortIsToldToAThreadThatAsksNothing) {
  FakeAgent agent;
  AgentLink link(agent.path());
  agent.Accept();
  std::promise<int64_t> first, second;
  link.on_abort(
      [&](int64_t generation) { (generation == 3 ? first : second).set_value(generation); });
  agent.Say("DRAIN=1");
  agent.Say("ABORT=3\nABORT=2");
  EXPECT_EQ(first.get_future().get(), 3);
  agent.Say("ABORT=3");  // no second time
  agent.Say("ABORT=4");
  EXPECT_EQ(second.get_future().get(), 4);
  EXPECT_TRUE(link.drain_requested());
}

TEST(AgentLink, AnAbortThatWasSaidBeforeIsToldAtOnceAndNobodyOutlivesTheLink) {
  FakeAgent agent;
  int64_t heard = 0;
  {
    AgentLink link(agent.path());
    agent.Accept();
    agent.Say("ABORT=7");
    EXPECT_EQ(link.aborted_generation(), 7);
    link.on_abort([&](int64_t generation) { heard = generation; });
    EXPECT_EQ(heard, 7);
  }
  AgentLink nobody("");
  nobody.on_abort([](int64_t) { ADD_FAILURE(); });
}

TEST(AgentLink, IsFoundThroughTheEnvironment) {
  FakeAgent agent;
  setenv("MUSTER_SOCKET", agent.path().c_str(), 1);
  AgentLink link;
  unsetenv("MUSTER_SOCKET");
  agent.Accept();
  link.ready();
  EXPECT_THAT(agent.Hear(), ElementsAre("READY=1"));
}

}  // namespace
}  // namespace muster
