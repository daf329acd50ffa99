#include "base/local_addresses.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/host_port.h"

namespace muster {
namespace {

TEST(LocalAddressesTest, LoopbackIsThereAndComesLast) {
  const std::vector<std::string> addresses = LocalAddresses();
  const auto loopback = std::find(addresses.begin(), addresses.end(), "127.0.0.1");
  ASSERT_NE(loopback, addresses.end());
  EXPECT_TRUE(std::all_of(loopback, addresses.end(), IsLoopbackHost));
}

TEST(LocalAddressesTest, OnlyOwnAddressesAreLocal) {
  EXPECT_TRUE(IsLocalAddress("127.0.0.1"));
  EXPECT_TRUE(IsLocalAddress("127.0.1.1"));
  EXPECT_TRUE(IsLocalAddress("::1"));
  EXPECT_FALSE(IsLocalAddress("192.0.2.1"));  // reserved for documentation
  EXPECT_FALSE(IsLocalAddress("node07"));
}

TEST(LocalAddressesTest, TheRouteToLoopbackIsLoopback) {
  EXPECT_EQ(RouteAddress("127.0.0.1"), "127.0.0.1");
  EXPECT_EQ(RouteAddress("not an address"), "");
}

}  // namespace
}  // namespace muster
