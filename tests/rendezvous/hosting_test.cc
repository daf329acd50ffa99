#include "rendezvous/hosting.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace muster {
namespace {

using Addresses = std::vector<std::string>;

ClusterOptions Options(const std::string& host, std::optional<bool> is_host = std::nullopt) {
  ClusterOptions options;
  options.endpoints = {{host, 29400}};
  options.is_host = is_host;
  return options;
}

TEST(HostingTest, AnEndpointOfThisHostIsListenedOnWhereItPoints) {
  EXPECT_EQ(HostingAddresses(Options("127.0.0.1"), {"127.0.0.1"}), Addresses{"127.0.0.1"});
  EXPECT_EQ(HostingAddresses(Options("localhost"), {"::1", "127.0.0.1"}),
            (Addresses{"::1", "127.0.0.1"}));
}

TEST(HostingTest, AnEndpointOfAnotherHostIsNot) {
  EXPECT_EQ(HostingAddresses(Options("node07"), {"192.0.2.1"}), Addresses{});
}

TEST(HostingTest, OnlyTheOwnOfSeveralAddressesAreTried) {
  EXPECT_EQ(HostingAddresses(Options("127.0.0.1"), {"192.0.2.1", "127.0.0.1"}),
            Addresses{"127.0.0.1"});
}

TEST(HostingTest, ANameThatIsOnlyLoopbackHereIsListenedOnEverywhere) {
  EXPECT_EQ(HostingAddresses(Options("node01"), {"127.0.1.1"}), (Addresses{"::", "0.0.0.0"}));
}

TEST(HostingTest, IsHostDecides) {
  EXPECT_EQ(HostingAddresses(Options("127.0.0.1", false), {"127.0.0.1"}), Addresses{});
  EXPECT_EQ(HostingAddresses(Options("vip", true), {"192.0.2.1"}), (Addresses{"::", "0.0.0.0"}));
  EXPECT_EQ(HostingAddresses(Options("127.0.0.1", true), {"127.0.0.1"}), Addresses{"127.0.0.1"});
}

TEST(HostingTest, HostsOnceAndLeavesTheSecondToDial) {
  RealClock clock;
  ClusterOptions options = Options("127.0.0.1");
  options.endpoints[0].port = 0;
  std::string heard;
  options.on_hosting = [&heard](const std::string& address) { heard = address; };
  const absl::StatusOr<HostedMaster> first = TryHost(&clock, options, {"127.0.0.1"});
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_NE(first->server, nullptr);
  EXPECT_EQ(first->dial_address, "127.0.0.1");
  EXPECT_EQ(heard, "127.0.0.1:" + std::to_string(first->server->port()));

  options.endpoints[0].port = first->server->port();
  const absl::StatusOr<HostedMaster> second = TryHost(&clock, options, {"127.0.0.1"});
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->server, nullptr);
}

}  // namespace
}  // namespace muster
