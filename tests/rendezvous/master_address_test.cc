#include "rendezvous/master_address.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

Hello Agent() {
  Hello hello;
  hello.own_addresses = {"10.0.0.7", "192.168.1.7", "fd00::7"};
  hello.dialled_host = "head";
  return hello;
}

TEST(MasterAddress, TheFlagWins) {
  Hello hello = Agent();
  hello.local_addr = "[fd00::8]";
  EXPECT_EQ(ReachableAddress(hello, "10.0.0.7", "").address, "fd00::8");
}

TEST(MasterAddress, WhereTheStreamComesFrom) {
  const AddressChoice choice = ReachableAddress(Agent(), "192.168.1.7", "head");
  EXPECT_EQ(choice.address, "192.168.1.7");
  EXPECT_EQ(choice.guess, "");
  EXPECT_EQ(ReachableAddress(Agent(), "fd00::7", "").address, "fd00::7");
}

TEST(MasterAddress, OnTheMastersHostTheEndpointAsTheOthersDialIt) {
  Hello hello = Agent();
  hello.dialled_host = "localhost";
  EXPECT_EQ(ReachableAddress(hello, "127.0.0.1", "head.example").address, "head.example");
  EXPECT_EQ(ReachableAddress(hello, "", "head.example").address, "head.example");
  EXPECT_EQ(ReachableAddress(hello, "::1", "").address, "localhost");
  EXPECT_EQ(ReachableAddress(hello, "127.0.1.1", "").guess, "");
}

TEST(MasterAddress, BehindNatItsOwnRouteIsAGuess) {
  const AddressChoice choice = ReachableAddress(Agent(), "203.0.113.9", "head");
  EXPECT_EQ(choice.address, "10.0.0.7");
  EXPECT_NE(choice.guess.find("203.0.113.9"), std::string::npos);
}

TEST(MasterAddress, AnAgentThatNamesNothingStillGetsOne) {
  EXPECT_EQ(ReachableAddress(Hello(), "10.1.2.3", "").address, "10.1.2.3");
  EXPECT_EQ(ReachableAddress(Hello(), "", "").address, "127.0.0.1");
}

}  // namespace
}  // namespace muster
