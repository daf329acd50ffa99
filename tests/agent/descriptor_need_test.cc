#include "agent/descriptor_need.h"

#include <gtest/gtest.h>

#include <string>

namespace muster {
namespace {

AgentOptions Slots(int slots) {
  AgentOptions options;
  options.slots = slots;
  return options;
}

TEST(DescriptorNeed, AUsualLimitIsEnoughForTheLargestNode) {
  EXPECT_TRUE(CheckDescriptorLimit(Slots(512), 1024).ok());
}

TEST(DescriptorNeed, GrowsWithTheStreamsThatAreRedirectedOrTeed) {
  AgentOptions options = Slots(10);
  const int64_t plain = DescriptorsNeeded(options);
  options.log.redirects.otherwise = Streams::kStderr;
  const int64_t redirected = DescriptorsNeeded(options);
  options.log.tee.otherwise = Streams::kBoth;
  const int64_t teed = DescriptorsNeeded(options);
  EXPECT_EQ(redirected - plain, 10 * 2);
  EXPECT_EQ(teed - plain, 10 * 8) << "a tee implies the redirection";
}

TEST(DescriptorNeed, OneTooFewIsSaidWithBothNumbers) {
  const int64_t needed = DescriptorsNeeded(Slots(8));
  EXPECT_TRUE(CheckDescriptorLimit(Slots(8), needed).ok());
  const absl::Status status = CheckDescriptorLimit(Slots(8), needed - 1);
  const std::string message(status.message());
  EXPECT_NE(message.find(std::to_string(needed)), message.npos) << message;
  EXPECT_NE(message.find(std::to_string(needed - 1)), message.npos) << message;
  EXPECT_NE(message.find("ulimit -n"), message.npos) << message;
}

}  // namespace
}  // namespace muster
