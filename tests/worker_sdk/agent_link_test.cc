#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <muster/worker.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <vector>

#include "base/unique_fd.h"

namespace muster {
namespace {

using testing::Each;
using testing::ElementsAre;

// The agent's end: listens at a path of its own and takes one worker.
class FakeAgent {
 public:
  // Not in the test's own folder, whose path may be longer than a socket's may be.
  FakeAgent() : path_("/tmp/muster-agent-link." + std::to_string(getpid())) {
    unlink(path_.c_str());
    listener_.reset(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path_.c_str(), sizeof address.sun_path - 1);
    EXPECT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(listener_.get(), 1), 0);
  }
  ~FakeAgent() { unlink(path_.c_str()); }

  const std::string& path() const { return path_; }
  void Accept() { worker_.reset(accept(listener_.get(), nullptr, nullptr)); }
  void HangUp() { worker_.reset(); }
  void Say(const std::string& datagram) {
    ASSERT_EQ(send(worker_.get(), datagram.data(), datagram.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(datagram.size()));
  }
  // All that has arrived.
  std::vector<std::string> Hear() {
    std::vector<std::string> heard;
    std::string buffer(1 << 16, '\0');
    while (true) {
      const ssize_t size = recv(worker_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (size <= 0) return heard;
      heard.push_back(buffer.substr(0, static_cast<size_t>(size)));
    }
  }

 private:
  std::string path_;
  UniqueFd listener_;
  UniqueFd worker_;
};

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
