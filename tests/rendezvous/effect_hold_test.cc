#include "rendezvous/effect_hold.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace muster {
namespace {

using Serials = std::vector<JobRegistry::Serial>;

// Each effect is a stop order whose generation is the number in the test, or an acknowledgement.
class EffectHoldTest : public testing::Test {
 protected:
  void Step(uint64_t job, std::vector<int> orders, bool changes = false, int ack = 0) {
    JobEffects effects{job, "job", 1, {}};
    if (changes) effects.effects.push_back(Persist{});
    for (const int order : orders) {
      effects.effects.push_back(SendTo{1, StopWorkers{order, ""}});
    }
    if (ack != 0) effects.effects.push_back(SendTo{1, HeartbeatAck{static_cast<uint64_t>(ack)}});
    hold_.Add(std::move(effects));
  }
  void Change(uint64_t job, std::vector<int> orders) { Step(job, std::move(orders), true); }

  // "1:5 1:6 2:ack7": job and order.
  std::string Taken() {
    std::string text;
    for (const JobEffects& job : hold_.Take()) {
      for (const RoundEffect& effect : job.effects) {
        const MasterMessage& message = std::get<SendTo>(effect).message;
        const auto* order = std::get_if<StopWorkers>(&message);
        text +=
            (text.empty() ? "" : " ") + std::to_string(job.serial) + ":" +
            (order != nullptr ? std::to_string(order->generation)
                              : "ack" + std::to_string(std::get<HeartbeatAck>(message).sequence));
      }
    }
    return text;
  }

  EffectHold hold_;
};

TEST_F(EffectHoldTest, WhatChangesNothingPassesAtOnce) {
  Step(1, {5, 6});
  Step(2, {7});
  EXPECT_EQ(Taken(), "1:5 1:6 2:7");
  EXPECT_EQ(hold_.Begin(), Serials());
  EXPECT_TRUE(hold_.empty());
}

TEST_F(EffectHoldTest, WhatFollowsFromAChangeWaitsUntilItIsWritten) {
  Change(1, {5});
  EXPECT_EQ(Taken(), "");
  EXPECT_EQ(hold_.Begin(), Serials({1}));
  EXPECT_EQ(Taken(), "");
  hold_.End(true);
  EXPECT_EQ(Taken(), "1:5");
  EXPECT_EQ(Taken(), "");
  EXPECT_TRUE(hold_.empty());
}

TEST_F(EffectHoldTest, WhatComesAfterAChangeWaitsBehindItInItsOrder) {
  Change(1, {5});
  Step(1, {6});
  EXPECT_EQ(hold_.HeldOf(1), 2u);
  hold_.Begin();
  Step(1, {7});
  EXPECT_EQ(Taken(), "");
  hold_.End(true);
  EXPECT_EQ(Taken(), "1:5 1:6 1:7");
  EXPECT_EQ(hold_.HeldOf(1), 0u);
}

TEST_F(EffectHoldTest, AnotherJobDoesNotWait) {
  Change(1, {5});
  Step(2, {6});
  EXPECT_EQ(Taken(), "2:6");
}

TEST_F(EffectHoldTest, AcknowledgementsOfHeartbeatsGoPast) {
  Change(1, {5});
  Step(1, {}, false, 9);
  EXPECT_EQ(Taken(), "1:ack9");
  Step(1, {6}, false, 10);
  EXPECT_EQ(Taken(), "1:ack10");
  hold_.Begin();
  hold_.End(true);
  EXPECT_EQ(Taken(), "1:5 1:6");
}

TEST_F(EffectHoldTest, AChangeDuringAWriteGoesIntoTheNext) {
  Change(1, {5});
  hold_.Begin();
  Change(1, {6});
  Step(1, {7});
  EXPECT_EQ(hold_.Begin(), Serials()) << "one write at a time";
  hold_.End(true);
  EXPECT_EQ(Taken(), "1:5");
  EXPECT_EQ(hold_.Begin(), Serials({1}));
  hold_.End(true);
  EXPECT_EQ(Taken(), "1:6 1:7");
}

TEST_F(EffectHoldTest, AllJobsThatChangedMeanwhileAreWrittenTogether) {
  Change(3, {5});
  hold_.Begin();
  Change(2, {6});
  Change(1, {7});
  Change(1, {8});
  hold_.End(true);
  EXPECT_EQ(Taken(), "3:5");
  EXPECT_EQ(hold_.Begin(), Serials({1, 2}));
  hold_.End(true);
  EXPECT_EQ(Taken(), "1:7 1:8 2:6");
}

TEST_F(EffectHoldTest, AWriteThatFailedIsAskedForAgainAndNothingPassed) {
  Change(1, {5});
  hold_.Begin();
  Change(2, {6});
  hold_.End(false);
  EXPECT_EQ(Taken(), "");
  EXPECT_EQ(hold_.Begin(), Serials({1, 2}));
  hold_.End(true);
  EXPECT_EQ(Taken(), "1:5 2:6");
}

TEST_F(EffectHoldTest, AChangeWithoutEffectsIsWrittenToo) {
  Change(1, {});
  EXPECT_FALSE(hold_.empty());
  EXPECT_EQ(hold_.Begin(), Serials({1}));
  hold_.End(true);
  EXPECT_TRUE(hold_.empty());
}

}  // namespace
}  // namespace muster
