#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <optional>

#include "base/unique_fd.h"
#include "rendezvous/cluster.h"
#include "tests/rendezvous/test_agent.h"

// Two processes on loopback, the first of which hosts the master and is killed. The first is forked
// before any test runs, because nothing may fork beside the threads of gRPC.

namespace muster {
namespace {

struct HostProcess {
  std::unique_ptr<ReservedPort> port;
  pid_t pid = -1;
  UniqueFd attends;  // one byte: it hosts the master and waits for the second node
};

HostProcess& Host() {
  static auto* const kHost = new HostProcess;
  return *kHost;
}

std::unique_ptr<RendezvousClient> Client(std::atomic<int>* hosted) {
  ClusterOptions options;
  options.endpoints = {{"127.0.0.1", Host().port->number()}};
  options.on_hosting = [hosted](const std::string&) { ++*hosted; };
  return MakeClusterRendezvous(options);
}

[[noreturn]] void RunHost(UniqueFd attends) {
  std::atomic<int> hosted = 0;
  TestAgent agent(Client(&hosted));
  agent.Attend(HelloOf("job", "a", 2));
  agent.Await<Wait>();
  if (hosted != 1 || write(attends.get(), "!", 1) != 1) _exit(1);
  for (;;) pause();
}

void StartHost() {
  Host().port = std::make_unique<ReservedPort>();
  int ends[2];
  if (pipe(ends) != 0) abort();
  Host().attends.reset(ends[0]);
  Host().pid = fork();
  if (Host().pid != 0) {
    close(ends[1]);
    return;
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  RunHost(UniqueFd(ends[1]));
}

TEST(TakeoverTest, AnAgentOfTheSameHostBecomesMasterWhenTheFirstIsKilledAndKeepsItsGeneration) {
  char byte = 0;
  ASSERT_EQ(read(Host().attends.get(), &byte, 1), 1);
  std::atomic<int> hosted = 0;
  TestAgent second(Client(&hosted));
  second.Attend(HelloOf("job", "b", 2));
  Hello again = HelloOf("job", "b", 2);
  again.running = {WorkersPhase::kRunning, second.Await<Assignment>()};
  EXPECT_EQ(hosted, 0);

  kill(Host().pid, SIGKILL);
  waitpid(Host().pid, nullptr, 0);
  const StreamEnded end = second.Await<StreamEnded>();
  EXPECT_FALSE(end.unreachable) << end.detail;

  // The successor hosts; its workers run on, and their generation is known to the new master.
  second.Attend(again);
  second.client().Send(Heartbeat{1});
  second.Await<HeartbeatAck>();
  EXPECT_EQ(hosted, 1);

  // A new process of the killed node finds that master.
  TestAgent returned(Client(&hosted));
  Hello hello = HelloOf("job", "a", 2);
  hello.incarnation += 1;
  returned.Attend(hello);
  EXPECT_FALSE(returned.Await<Wait>().reason.empty());
  EXPECT_EQ(hosted, 1);
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  muster::StartHost();
  return RUN_ALL_TESTS();
}
