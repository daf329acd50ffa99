#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "launcher/plan.h"
#include "tests/launcher/fake_machine.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using Words = std::vector<std::string>;

absl::StatusOr<Plan> Try(Words words) {
  const EnvMap env = {{"PATH", "/bin:/usr/bin"}};
  words.insert(words.begin(), {"--nnodes", "2", "--rdzv-id", "job"});
  words.emplace_back("train.py");
  absl::StatusOr<Options> options = ParseOptions(words, env);
  if (!options.ok()) return options.status();
  FakeMachine machine;
  return MakePlan(*options, env, machine);
}

TEST(PlanSecurity, TheFilesReachTheAgent) {
  const absl::StatusOr<Plan> plan =
      Try({"--rdzv-endpoint", "node1", "--tls-ca", "ca", "--tls-cert", "cert", "--tls-key", "key",
           "--token-file", "token", "--tls-server-name", "m", "--allowed-peers", "a,b"});
  ASSERT_TRUE(plan.ok()) << plan.status();
  const ClientSecurity& security = plan->agent.security;
  EXPECT_EQ(security.tls, (TlsFiles{"ca", "cert", "key"}));
  EXPECT_EQ(security.token_file, "token");
  EXPECT_EQ(security.server_name, "m");
  EXPECT_EQ(plan->agent.allowed_peers, (Words{"a", "b"}));
  EXPECT_FALSE(plan->agent.require_auth);
  EXPECT_THAT(DryRunText(*plan), HasSubstr("token-file"));
}

TEST(PlanSecurity, WhatDoesNotFitIsRefused) {
  struct Case {
    Words words;
    absl::StatusCode code;
    const char* message;
  };
  const auto usage = absl::StatusCode::kInvalidArgument;
  const auto config = absl::StatusCode::kFailedPrecondition;
  const std::vector<Case> cases = {
      {{"--rdzv-endpoint", "node1", "--token-file", "t"}, config, "--tls-ca"},
      {{"--rdzv-endpoint", "node1", "--tls-ca", "c", "--tls-cert", "c"}, usage, "--tls-key"},
      {{"--rdzv-endpoint", "node1", "--tls-cert", "c", "--tls-key", "k"}, usage, "--tls-ca"},
      {{"--rdzv-endpoint", "node1", "--tls-ca", "c", "--allowed-peers", "a"}, usage, "--tls-cert"},
      {{"--rdzv-endpoint", "node1", "--require-auth"}, config, "--require-auth: there is nothing"},
      {{"--rdzv-endpoint", "node1", "--tls-ca", "c", "--rdzv-conf", "is_host=1"}, usage, "is_host"},
      {{"--rdzv-endpoint", "node1", "--allowed-peers", "a,,b"}, usage, "empty name"},
  };
  for (const Case& each : cases) {
    const absl::Status status = Try(each.words).status();
    EXPECT_EQ(status.code(), each.code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(each.message));
  }
}

TEST(PlanSecurity, ANodeThatDoesNotHostNeedsNothingToAskOthersFor) {
  EXPECT_TRUE(Try({"--rdzv-endpoint", "node1", "--require-auth", "--rdzv-conf", "is_host=0"}).ok());
}

}  // namespace
}  // namespace muster
