#include "rendezvous/local_rendezvous.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace muster {
namespace {

using namespace std::chrono_literals;

class LocalRendezvousTest : public testing::Test {
 protected:
  LocalRendezvousTest() : rendezvous_(MakeOptions()) {}

  LocalRendezvous::Options MakeOptions() {
    LocalRendezvous::Options options;
    options.job_id = "job";
    options.instance = 7;
    options.now = [this] { return now_; };
    options.log = [this](const Reason& reason) { log_.push_back(Sentence(reason)); };
    return options;
  }

  static Hello OneNode(int max_restarts = 0) {
    Hello hello;
    hello.job_id = "job";
    hello.settings.max_restarts = max_restarts;
    hello.node_id = "here";
    hello.incarnation = 1;
    hello.slots = 4;
    hello.next_port = 40001;
    return hello;
  }

  bool IsReadable(int timeout_ms = 0) {
    pollfd descriptor{rendezvous_.fd(), POLLIN, 0};
    return poll(&descriptor, 1, timeout_ms) == 1;
  }

  template <typename T>
  T ReceiveMessage() {
    const auto event = rendezvous_.Receive();
    const MasterMessage* message = event ? std::get_if<MasterMessage>(&*event) : nullptr;
    const T* wanted = message != nullptr ? std::get_if<T>(message) : nullptr;
    EXPECT_NE(wanted, nullptr);
    return wanted != nullptr ? *wanted : T();
  }

  WorkerFailed Failed(int64_t generation) {
    WorkerFailed failed;
    failed.generation = generation;
    failed.status = ExitStatus::Exited(3);
    failed.uptime = 100ms;
    return failed;
  }

  Time now_{1h};
  std::vector<std::string> log_;
  LocalRendezvous rendezvous_;
};

TEST_F(LocalRendezvousTest, AJobThatSaysNothingForAYearGoesOn) {
  rendezvous_.Open();
  rendezvous_.Send(OneNode());
  ReceiveMessage<Assignment>();
  now_ += 8760h;
  EXPECT_FALSE(rendezvous_.Receive());
  EXPECT_EQ(rendezvous_.machine().phase(), RoundPhase::kRunning);
  EXPECT_EQ(rendezvous_.machine().generation(), 1);
}

TEST_F(LocalRendezvousTest, OneNodeStartsAtOnceOnTheLoopbackAddress) {
  EXPECT_FALSE(IsReadable());
  rendezvous_.Open();
  rendezvous_.Send(OneNode());
  EXPECT_TRUE(IsReadable());
  const auto place = ReceiveMessage<Assignment>();
  EXPECT_EQ(place.instance, 7u);
  EXPECT_EQ(place.generation, 1);
  EXPECT_EQ(place.world_size, 4);
  EXPECT_EQ(place.master_addr, "127.0.0.1");
  EXPECT_EQ(place.master_port, 40001);
  EXPECT_FALSE(IsReadable());
  EXPECT_FALSE(rendezvous_.Receive());
  EXPECT_EQ(log_.back(), "generation 1 started with 1 node");
}

TEST_F(LocalRendezvousTest, VerdictIsAcknowledgedByFinish) {
  rendezvous_.Open();
  rendezvous_.Send(OneNode());
  ReceiveMessage<Assignment>();
  rendezvous_.Send(WorkersSucceeded{1, 40001});
  EXPECT_TRUE(ReceiveMessage<Verdict>().succeeded);
  rendezvous_.Finish();
  const auto event = rendezvous_.Receive();
  ASSERT_TRUE(event);
  EXPECT_TRUE(std::holds_alternative<RendezvousFinished>(*event));
  EXPECT_TRUE(rendezvous_.machine().finished());
}

TEST_F(LocalRendezvousTest, FailureRestartsWithANewPortUntilTheBudgetIsSpent) {
  rendezvous_.Open();
  rendezvous_.Send(OneNode(1));
  ReceiveMessage<Assignment>();
  rendezvous_.Send(Failed(1));
  rendezvous_.Send(WorkersStopped{1, 40002});
  const auto place = ReceiveMessage<Assignment>();
  EXPECT_EQ(place.generation, 2);
  EXPECT_EQ(place.restart_count, 1);
  EXPECT_EQ(place.master_port, 40002);
  rendezvous_.Send(Failed(2));
  rendezvous_.Send(WorkersStopped{2, 40003});
  EXPECT_EQ(ReceiveMessage<Verdict>().exit_code, 3);
}

TEST_F(LocalRendezvousTest, TheDescriptorWakesForTheMachinesDeadline) {
  rendezvous_.Open();
  rendezvous_.Send(OneNode(5));
  ReceiveMessage<Assignment>();
  for (int64_t generation = 1; generation <= 2; ++generation) {
    rendezvous_.Send(Failed(generation));
    rendezvous_.Send(WorkersStopped{generation, 40002});
    if (generation == 1) ReceiveMessage<Assignment>();
  }
  EXPECT_LE(ReceiveMessage<Wait>().at_most, 1s);
  EXPECT_FALSE(IsReadable());
  now_ += 999ms;
  rendezvous_.Send(Heartbeat{1});  // arms the timer for what is left
  ReceiveMessage<HeartbeatAck>();
  now_ += 1ms;
  EXPECT_TRUE(IsReadable(10'000));
  EXPECT_EQ(ReceiveMessage<Assignment>().generation, 3);
}

TEST_F(LocalRendezvousTest, ASuspendedProcessIsNotLost) {
  rendezvous_.Open();
  rendezvous_.Send(OneNode());
  ReceiveMessage<Assignment>();
  now_ += 1h;
  EXPECT_FALSE(rendezvous_.Receive());
  EXPECT_EQ(rendezvous_.machine().phase(), RoundPhase::kRunning);
  EXPECT_GT(rendezvous_.machine().NextDeadline(), now_);
}

TEST_F(LocalRendezvousTest, RefusedSettingsEndTheStream) {
  Hello hello = OneNode();
  hello.settings.nodes_min = 0;
  rendezvous_.Open();
  rendezvous_.Send(hello);
  EXPECT_EQ(ReceiveMessage<Rejected>().exit_code, 78);
  const auto event = rendezvous_.Receive();
  ASSERT_TRUE(event);
  EXPECT_TRUE(std::holds_alternative<StreamEnded>(*event));
}

TEST_F(LocalRendezvousTest, WithoutAStreamNothingIsSent) {
  rendezvous_.Send(OneNode());
  EXPECT_FALSE(IsReadable());
  EXPECT_FALSE(rendezvous_.Receive());
}

}  // namespace
}  // namespace muster
