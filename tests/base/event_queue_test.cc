#include "base/event_queue.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "tests/fakes/fake_clock.h"

namespace muster {
namespace {

using namespace std::chrono_literals;

TEST(EventQueueTest, KeepsTheOrderOfEachProducerAndLosesNothing) {
  RealClock clock;
  EventQueue<std::pair<int, int>> queue(&clock, 3);
  std::vector<std::thread> producers;
  for (int producer = 0; producer < 4; ++producer) {
    producers.emplace_back([&queue, producer] {
      for (int i = 0; i < 200; ++i) EXPECT_TRUE(queue.Push({producer, i}));
    });
  }
  std::vector<int> next(4, 0);
  for (int taken = 0; taken < 800; ++taken) {
    const auto event = queue.Pop(kNever);
    ASSERT_TRUE(event.has_value());
    EXPECT_EQ(event->second, next[event->first]++);
  }
  for (std::thread& producer : producers) producer.join();
}

TEST(EventQueueTest, AFullQueueMakesTheProducerWaitUntilThereIsRoom) {
  RealClock clock;
  EventQueue<int> queue(&clock, 1);
  ASSERT_TRUE(queue.Push(1));
  std::thread producer([&queue] { EXPECT_TRUE(queue.Push(2)); });
  EXPECT_EQ(queue.Pop(kNever), 1);
  EXPECT_EQ(queue.Pop(kNever), 2);
  producer.join();
}

TEST(EventQueueTest, ClosingLetsEverybodyGoAndKeepsWhatWasThere) {
  RealClock clock;
  EventQueue<int> queue(&clock, 1);
  ASSERT_TRUE(queue.Push(1));
  std::thread producer([&queue] { EXPECT_FALSE(queue.Push(2)); });
  queue.Close();
  producer.join();
  EXPECT_EQ(queue.Pop(kNever), 1);
  EXPECT_EQ(queue.Pop(kNever), std::nullopt);
  EXPECT_FALSE(queue.Push(3));
}

TEST(EventQueueTest, PopReturnsNothingAtTheDeadlineOfTheClock) {
  FakeClock clock;
  EventQueue<int> queue(&clock, 1);
  const Time deadline = clock.Now() + 10s;
  std::thread consumer([&] { EXPECT_EQ(queue.Pop(deadline), std::nullopt); });
  clock.Advance(10s);
  consumer.join();
  EXPECT_EQ(queue.Pop(deadline), std::nullopt);
}

}  // namespace
}  // namespace muster
