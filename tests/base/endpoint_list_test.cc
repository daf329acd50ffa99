#include "base/endpoint_list.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace muster {
namespace {

TEST(EndpointListTest, ReadsWhatItWrites) {
  const std::vector<HostPort> expected = {{"a", 1}, {"b", 29400}, {"::1", 2}};
  EXPECT_EQ(*ParseEndpoints("a:1,b,[::1]:2", 29400), expected);
  EXPECT_EQ(ToString(expected), "a:1,b:29400,[::1]:2");
  EXPECT_EQ(*ParseEndpoints(ToString(expected), 0), expected);
}

TEST(EndpointListTest, OneIsAListAndNoneIsTheOwnHost) {
  EXPECT_EQ(*ParseEndpoints("node07", 29400), (std::vector<HostPort>{{"node07", 29400}}));
  EXPECT_EQ(*ParseEndpoints("", 29400), (std::vector<HostPort>{{"localhost", 29400}}));
}

TEST(EndpointListTest, AnEmptyOneAndTheSameOneTwiceAreRefused) {
  for (const std::string text : {"a,", ",a", "a,,b", ",", "a:1,a:1", "a,a:29400", "a,b:x"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseEndpoints(text, 29400).status())) << text;
  }
}

}  // namespace
}  // namespace muster
