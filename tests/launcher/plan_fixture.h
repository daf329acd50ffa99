#ifndef MUSTER_TESTS_LAUNCHER_PLAN_FIXTURE_H_
#define MUSTER_TESTS_LAUNCHER_PLAN_FIXTURE_H_

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "launcher/plan.h"
#include "tests/launcher/fake_machine.h"

namespace muster {

// Plans command lines on a FakeMachine.
class PlanFixture : public ::testing::Test {
 protected:
  // Plans `words` followed by the program train.py.
  absl::StatusOr<Plan> Try(std::vector<std::string> words) {
    words.emplace_back("train.py");
    absl::StatusOr<Options> options = ParseOptions(words, env_);
    if (!options.ok()) return options.status();
    return MakePlan(*options, env_, machine_);
  }

  Plan Make(std::vector<std::string> words) {
    absl::StatusOr<Plan> plan = Try(std::move(words));
    EXPECT_TRUE(plan.ok()) << plan.status();
    return plan.ok() ? *std::move(plan) : Plan();
  }

  std::string Problem(std::vector<std::string> words, absl::StatusCode code) {
    absl::Status status = Try(std::move(words)).status();
    EXPECT_EQ(status.code(), code) << status;
    return std::string(status.message());
  }
  std::string UsageError(std::vector<std::string> words) {
    return Problem(std::move(words), absl::StatusCode::kInvalidArgument);
  }
  std::string Unmet(std::vector<std::string> words) {
    return Problem(std::move(words), absl::StatusCode::kFailedPrecondition);
  }

  FakeMachine machine_;
  EnvMap env_ = {{"PATH", "/bin:/usr/bin"}};
};

}  // namespace muster

#endif  // MUSTER_TESTS_LAUNCHER_PLAN_FIXTURE_H_
