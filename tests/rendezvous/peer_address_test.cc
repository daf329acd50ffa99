#include "rendezvous/peer_address.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(PeerAddressTest, IsTheAddressWithoutPortAndBrackets) {
  EXPECT_EQ(PeerAddress("ipv4:10.0.0.7:41234"), "10.0.0.7");
  EXPECT_EQ(PeerAddress("ipv6:[::1]:41234"), "::1");
  EXPECT_EQ(PeerAddress("ipv6:%5B::1%5D:41234"), "::1");
  EXPECT_EQ(PeerAddress("ipv6:%5Bfe80::1%25eth0%5D:41234"), "fe80::1%eth0");
  EXPECT_EQ(PeerAddress("ipv6:%5B::ffff:10.0.0.7%5D:41234"), "10.0.0.7");
  EXPECT_EQ(PeerAddress("ipv6:[2001:DB8::7]:1"), "2001:DB8::7");
}

TEST(PeerAddressTest, IsEmptyForEverythingElse) {
  for (const char* peer : {"", "unix:/run/x", "unix:", "ipv4", "ipv4:", "ipv4:10.0.0.7",
                           "ipv4:node07:80", "ipv6:%5B", "ipv6:%5Bx%5D:1", "10.0.0.7:80"}) {
    EXPECT_EQ(PeerAddress(peer), "") << peer;
  }
}

}  // namespace
}  // namespace muster
