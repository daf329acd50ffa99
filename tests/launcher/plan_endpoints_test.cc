#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/endpoint_list.h"
#include "launcher/plan.h"
#include "tests/launcher/fake_machine.h"

// Endpoints of several masters.

namespace muster {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<Plan> PlanOf(std::vector<std::string> words) {
  const EnvMap env = {{"PATH", "/bin:/usr/bin"}};
  FakeMachine machine;
  words.insert(words.begin(), "--rdzv-id=x");
  words.emplace_back("train.py");
  const absl::StatusOr<Options> options = ParseOptions(words, env);
  if (!options.ok()) return options.status();
  return MakePlan(*options, env, machine);
}

std::string UsageError(std::vector<std::string> words) {
  const absl::Status status = PlanOf(std::move(words)).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  return std::string(status.message());
}

TEST(PlanEndpoints, SeveralAreTriedInTheOrderInWhichTheyAreGiven) {
  const Plan plan = *PlanOf({"--nnodes=2", "--rdzv-endpoint=a,b:1,[::1]:2"});
  EXPECT_EQ(ToString(plan.agent.endpoints()), "a:29400,b:1,[::1]:2");
  EXPECT_TRUE(plan.spans_nodes());
  EXPECT_THAT(DryRunText(plan), HasSubstr("a:29400,b:1,[::1]:2"));
}

TEST(PlanEndpoints, OneIsAsBefore) {
  const Plan plan = *PlanOf({"--nnodes=2", "--rdzv-endpoint=a"});
  EXPECT_EQ(ToString(plan.agent.endpoints()), "a:29400");
  EXPECT_TRUE(plan.agent.other_endpoints.empty());
}

TEST(PlanEndpoints, WhatSeveralCannotBeIsRefused) {
  EXPECT_THAT(UsageError({"--nnodes=2", "--rdzv-endpoint=a,b:0"}), HasSubstr("give a port"));
  EXPECT_THAT(UsageError({"--nnodes=2", "--rdzv-endpoint=a,"}), HasSubstr("is empty"));
  EXPECT_THAT(UsageError({"--nnodes=2", "--rdzv-endpoint=a,a:29400"}), HasSubstr("given twice"));
  EXPECT_THAT(UsageError({"--nnodes=2", "--rdzv-endpoint=a,b", "--rdzv-conf=is_host=1"}),
              HasSubstr("names several"));
}

}  // namespace
}  // namespace muster
