#include "base/host_port.h"

#include <gtest/gtest.h>

#include <string>

namespace muster {
namespace {

struct Good {
  std::string text;
  HostPort expected;
};

TEST(HostPortTest, ReadsEveryFormOfAnEndpoint) {
  const Good table[] = {
      {"", {"localhost", 29400}},
      {"node07", {"node07", 29400}},
      {"node07:1234", {"node07", 1234}},
      {"node_7.cluster-a.example:0", {"node_7.cluster-a.example", 0}},
      {":1234", {"localhost", 1234}},
      {"10.0.0.7", {"10.0.0.7", 29400}},
      {"10.0.0.7:65535", {"10.0.0.7", 65535}},
      {"::1", {"::1", 29400}},
      {"[::1]", {"::1", 29400}},
      {"[::1]:1234", {"::1", 1234}},
      {"fe80::1%eth0", {"fe80::1%eth0", 29400}},
      {"[fe80::1%eth0]:80", {"fe80::1%eth0", 80}},
      {"::ffff:10.0.0.7", {"::ffff:10.0.0.7", 29400}},
  };
  for (const Good& row : table) {
    const absl::StatusOr<HostPort> parsed = ParseHostPort(row.text, 29400);
    ASSERT_TRUE(parsed.ok()) << row.text << ": " << parsed.status();
    EXPECT_EQ(*parsed, row.expected) << row.text;
  }
}

TEST(HostPortTest, RefusesWhatIsNoEndpointInOneLineThatQuotesIt) {
  const std::string table[] = {
      "node07:",
      "node07:port",
      "node07:65536",
      "node07:-1",
      "node07:000080",
      "node07: 80",
      "[::1",
      "[::1]80",
      "[::1]:",
      "[node07]:80",
      "::1:2:3:4:5:6:7:8:9",
      "a b:80",
      "tcp://a:80",
      "node07:80/x",
      "[]:80",
      "-node:80",
      "node\n07:80",
      "e80::1%eth0]:7",
      "[fe80::1%]:80",
      "[fe80::1%a\nb]:80",
      std::string("fe80::1\0x", 9),
      std::string(254, 'a'),
  };
  for (const std::string& text : table) {
    const absl::StatusOr<HostPort> parsed = ParseHostPort(text, 29400);
    ASSERT_TRUE(absl::IsInvalidArgument(parsed.status())) << text;
    const std::string message(parsed.status().message());
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    EXPECT_NE(message.find(text.substr(0, 4)), std::string::npos) << message;
    EXPECT_LT(message.size(), 250u) << message;
  }
}

TEST(HostPortTest, WritesWhatItReads) {
  for (const std::string text : {"node07:1234", "10.0.0.7:80", "[::1]:80", "[fe80::1%eth0]:80"}) {
    EXPECT_EQ(ToString(*ParseHostPort(text, 1)), text);
  }
}

TEST(HostPortTest, KnowsLiteralsAndLoopback) {
  EXPECT_TRUE(IsAddressLiteral("10.0.0.7"));
  EXPECT_TRUE(IsAddressLiteral("fe80::1%eth0"));
  EXPECT_FALSE(IsAddressLiteral("node07"));
  EXPECT_FALSE(IsAddressLiteral("10.0.0"));
  EXPECT_TRUE(IsLoopbackHost("localhost"));
  EXPECT_TRUE(IsLoopbackHost("127.0.1.1"));
  EXPECT_TRUE(IsLoopbackHost("::1"));
  EXPECT_TRUE(IsLoopbackHost("::ffff:127.0.0.1"));
  EXPECT_FALSE(IsLoopbackHost("127.example.com"));
  EXPECT_FALSE(IsLoopbackHost("10.0.0.7"));
}

TEST(HostPortTest, UnmapsOnlyMappedAddresses) {
  EXPECT_EQ(UnmapAddress("::ffff:10.0.0.7"), "10.0.0.7");
  EXPECT_EQ(UnmapAddress("::1"), "::1");
  EXPECT_EQ(UnmapAddress("10.0.0.7"), "10.0.0.7");
}

}  // namespace
}  // namespace muster
