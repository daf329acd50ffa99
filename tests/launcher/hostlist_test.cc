#include "launcher/hostlist.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace muster {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> Hosts(const char* text) {
  auto hosts = ExpandHostlist(text);
  EXPECT_TRUE(hosts.ok()) << text << ": " << hosts.status();
  return hosts.ok() ? *hosts : std::vector<std::string>();
}

TEST(Hostlist, RangesKeepTheirOrderAndLeadingZeros) {
  EXPECT_THAT(Hosts("gpu[01-03,7]"), ElementsAre("gpu01", "gpu02", "gpu03", "gpu7"));
  EXPECT_THAT(Hosts("n[9-11]"), ElementsAre("n9", "n10", "n11"));
  EXPECT_THAT(Hosts("n[098-101]"), ElementsAre("n098", "n099", "n100", "n101"));
  EXPECT_THAT(Hosts("a"), ElementsAre("a"));
  EXPECT_THAT(Hosts("b,a,b[2,1]"), ElementsAre("b", "a", "b2", "b1"));
}

TEST(Hostlist, ANameMayHaveSeveralBrackets) {
  EXPECT_THAT(Hosts("r[1-2]n[1-2]"), ElementsAre("r1n1", "r1n2", "r2n1", "r2n2"));
  EXPECT_THAT(Hosts("n[1-2]-ib.cluster"), ElementsAre("n1-ib.cluster", "n2-ib.cluster"));
}

TEST(Hostlist, WhatIsNoListIsNamedInOneLine) {
  for (const char* bad : {"", ",", "a,", "a[", "a]", "a[1", "a[]", "a[1-]", "a[-1]", "a[2-1]",
                          "a[1,,2]", "a[x]", "a[1-2-3]", "a[[1]]", "a[1]]", "a[0-65536]",
                          "a[1-1000]b[1-1000]", "a[99999999999]", "a[\n]"}) {
    auto hosts = ExpandHostlist(bad);
    ASSERT_EQ(hosts.status().code(), absl::StatusCode::kInvalidArgument) << bad;
    std::string message(hosts.status().message());
    EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 0) << message;
  }
}

}  // namespace
}  // namespace muster
