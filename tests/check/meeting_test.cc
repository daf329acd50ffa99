#include "check/meeting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "base/event_loop.h"
#include "check/ring.h"

namespace muster::check {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::Key;

constexpr Duration kPatience = 60s;  // a limit for what never comes

Time Patience() { return EventLoop::Now() + kPatience; }

std::vector<Dialled> DialOne(int port) { return Dial({{"127.0.0.1", port}}, Patience()); }

// A port that nobody listens on any more.
int ClosedPort() { return Listen(0).port; }

TEST(Channel, CarriesMessagesInOrder) {
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  Channel here{UniqueFd(pair[0])}, there{UniqueFd(pair[1])};
  const Fields messages[] = {{{"a", "1"}, {"a", "two\nlines"}}, {}, {{"b", ""}}};
  for (const Fields& message : messages) EXPECT_TRUE(here.Send(message, Patience()));
  for (const Fields& message : messages) EXPECT_EQ(there.Receive(Patience()), message);
  EXPECT_FALSE(there.Receive(Time()));
  EXPECT_FALSE(there.ended());
  here.Release();
  EXPECT_FALSE(there.Receive(Patience()));
  EXPECT_TRUE(there.ended());
}

TEST(Channel, EndsAtBytesThatAreNoMessage) {
  const std::string bad[] = {"GET / HTTP/1.1\r\n\r\n", "MCX", std::string("MCK1\xff\xff\xff\xff"),
                             std::string("MCK1\0\0\0\3abc", 11)};
  for (const std::string& bytes : bad) {
    int pair[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    const UniqueFd here(pair[0]);
    Channel there{UniqueFd(pair[1])};
    ASSERT_EQ(send(here.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    EXPECT_FALSE(there.Receive(Patience()));
    EXPECT_TRUE(there.ended()) << bytes;
  }
}

TEST(Dial, TellsOfEachTargetHowItWent) {
  const Listener open = Listen(0);
  ASSERT_EQ(open.error, 0);
  const std::vector<Dialled> dialled =
      Dial({{"127.0.0.1", open.port}, {"127.0.0.1", ClosedPort()}, {"nowhere", 1}}, Patience());
  EXPECT_EQ(dialled[0].error, 0);
  EXPECT_EQ(dialled[1].error, ECONNREFUSED);
  EXPECT_FALSE(dialled[1].fd.valid());
  EXPECT_EQ(dialled[2].error, EADDRNOTAVAIL);
}

TEST(Listen, SaysWhyAPortCannotBeHad) {
  const Listener first = Listen(0);
  EXPECT_EQ(Listen(first.port).error, EADDRINUSE);
}

TEST(Meeting, BringsEachRankTogetherAndSendsStrangersAway) {
  Listener listener = Listen(0);
  const int port = listener.port;
  std::vector<Dialled> silent = DialOne(port), wrong_key = DialOne(port),
                       wrong_rank = DialOne(port);
  Channel strangers[] = {Channel(std::move(wrong_key[0].fd)), Channel(std::move(wrong_rank[0].fd))};
  strangers[0].Send({{"key", "other"}, {"rank", "1"}}, Patience());
  strangers[1].Send({{"key", "job 1"}, {"rank", "3"}}, Patience());
  std::vector<std::thread> others;
  for (int rank : {1, 2}) {
    others.emplace_back([rank, port] {
      const Fields hello = {{"host", "h" + std::to_string(rank)}};
      Joined joined = Join("localhost", port, hello, "job 1", rank, Patience());
      ASSERT_TRUE(joined.channel);
      const std::optional<Fields> order = joined.channel->Receive(Patience());
      ASSERT_TRUE(order);
      joined.channel->Send({{"answer", std::string(FirstOf(*order, "do"))}}, Patience());
    });
  }
  Host host(std::move(listener), 3, "job 1");
  const std::map<int, Fields> all = host.Gather(Patience());
  EXPECT_THAT(all, ElementsAre(Key(1), Key(2)));
  EXPECT_EQ(FirstOf(all.at(2), "host"), "h2");
  host.Close();
  host.Tell({{"do", "dial"}}, Patience());
  const std::map<int, Fields> answers = host.Collect(Patience());
  EXPECT_EQ(answers.at(1), (Fields{{"answer", "dial"}}));
  for (std::thread& other : others) other.join();
  EXPECT_TRUE(host.Collect(Patience()).empty()) << "nobody is waited for who has gone";
  for (Channel& stranger : strangers) {
    EXPECT_FALSE(stranger.Receive(Patience()));
    EXPECT_TRUE(stranger.ended());
  }
}

TEST(Meeting, EndsAtItsDeadlineWithThoseWhoCame) {
  Listener listener = Listen(0);
  const int port = listener.port;
  std::thread other([port] {
    Joined joined = Join("127.0.0.1", port, {}, "k", 2, Patience());
    ASSERT_TRUE(joined.channel);
    EXPECT_TRUE(joined.channel->Receive(Patience()));
  });
  Host host(std::move(listener), 3, "k");
  std::map<int, Fields> all;
  while (all.empty()) all = host.Gather(EventLoop::Now() + 20ms);
  EXPECT_THAT(all, ElementsAre(Key(2)));
  host.Tell({{"do", "end"}}, Patience());
  other.join();
}

TEST(Join, SaysWhatEachAddressAnswered) {
  const Joined closed = Join("127.0.0.1", ClosedPort(), {}, "k", 1, EventLoop::Now() + 50ms);
  EXPECT_FALSE(closed.channel);
  ASSERT_EQ(closed.attempts.size(), 1u);
  EXPECT_EQ(closed.attempts[0].address, "127.0.0.1");
  EXPECT_EQ(closed.attempts[0].error, ECONNREFUSED);

  const Joined unknown = Join("no-such-host.invalid", 1, {}, "k", 1, Time());
  EXPECT_FALSE(unknown.channel);
  EXPECT_TRUE(unknown.attempts.empty());
  EXPECT_FALSE(unknown.resolve_problem.empty());

  const Listener silent = Listen(0);
  const Joined strange = Join("127.0.0.1", silent.port, {}, "k", 1, EventLoop::Now() + 50ms);
  EXPECT_FALSE(strange.channel);
  EXPECT_EQ(strange.attempts[0].error, EPROTO);
}

TEST(Ring, AddsWhatAllRanksBring) {
  for (const int size : {2, 3, 5}) {
    std::vector<Listener> listeners;
    for (int rank = 0; rank < size; ++rank) listeners.push_back(Listen(0));
    std::vector<std::thread> ranks;
    for (int rank = 0; rank < size; ++rank) {
      ranks.emplace_back([&, rank] {
        Ring ring(rank, size);
        const int next = listeners[static_cast<size_t>((rank + 1) % size)].port;
        // Somebody who only tries the port.
        DialOne(next);
        ASSERT_EQ(ring.Form({"127.0.0.1", next}, listeners[static_cast<size_t>(rank)], Patience()),
                  0);
        for (const size_t count : {size_t{1}, size_t{7}, size_t{100000}}) {
          std::vector<double> data(count);
          for (size_t i = 0; i < count; ++i) data[i] = rank + static_cast<double>(i);
          ASSERT_EQ(ring.Sum(&data, Patience()), 0);
          for (size_t i = 0; i < count; ++i) {
            ASSERT_EQ(data[i], size * (size - 1) / 2.0 + size * static_cast<double>(i)) << i;
          }
        }
      });
    }
    for (std::thread& rank : ranks) rank.join();
  }
}

TEST(Ring, SaysThatANeighbourHasGone) {
  const Listener listeners[] = {Listen(0), Listen(0)};
  std::thread other([&] {
    Ring ring(1, 2);
    ASSERT_EQ(ring.Form({"127.0.0.1", listeners[0].port}, listeners[1], Patience()), 0);
  });
  Ring ring(0, 2);
  ASSERT_EQ(ring.Form({"127.0.0.1", listeners[1].port}, listeners[0], Patience()), 0);
  other.join();
  const AllReduce result = MeasureRing(&ring, 0, 2, Patience());
  EXPECT_EQ(result.failed_rank, 0);
  EXPECT_FALSE(result.failure.empty());
}

TEST(Ring, CountsTheBytesOfEachLink) {
  EXPECT_DOUBLE_EQ(LinkBandwidth(100, 2, 1), 100);
  EXPECT_DOUBLE_EQ(LinkBandwidth(100, 4, 0.5), 300);
}

}  // namespace
}  // namespace muster::check
