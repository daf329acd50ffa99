#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "launcher/option_values.h"
#include "launcher/plan.h"
#include "tests/launcher/fake_machine.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

AgentOptions Planned(std::vector<std::string> words, EnvMap env) {
  env["PATH"] = "/bin:/usr/bin";
  words.emplace_back("train.py");
  FakeMachine machine;
  absl::StatusOr<Options> options = ParseOptions(words, env);
  EXPECT_TRUE(options.ok()) << options.status();
  absl::StatusOr<Plan> plan = MakePlan(*options, env, machine);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? plan->agent : AgentOptions();
}

TEST(PlanReportTest, FilesOfTheReport) {
  EXPECT_EQ(Planned({}, {}).program, "train.py");
  EXPECT_EQ(Planned({}, {}).report_file, "");
  EXPECT_EQ(Planned({}, {}).termination_log, "");
  EXPECT_EQ(Planned({}, {}).error_file, "");
  EXPECT_EQ(Planned({"--report-file", "r.json"}, {}).report_file, "r.json");
  const EnvMap kubernetes = {{"KUBERNETES_SERVICE_HOST", "10.0.0.1"}};
  EXPECT_EQ(Planned({}, kubernetes).termination_log, "/dev/termination-log");
  EXPECT_EQ(Planned({"--termination-log", "/t"}, kubernetes).termination_log, "/t");
  EXPECT_EQ(Planned({}, {{"TORCHELASTIC_ERROR_FILE", "/e.json"}}).error_file, "/e.json");
}

TEST(PlanReportTest, RotationOfLogs) {
  EXPECT_EQ(Planned({}, {}).log.bytes_max, 0);
  EXPECT_EQ(Planned({}, {}).log.files_max, 5);
  const AgentOptions agent = Planned({"--log-max-bytes", "10M", "--log-max-files", "2"}, {});
  EXPECT_EQ(agent.log.bytes_max, 10 << 20);
  EXPECT_EQ(agent.log.files_max, 2);
}

TEST(ParseBytesTest, NumbersWithUnits) {
  EXPECT_EQ(*ParseBytes("0"), 0);
  EXPECT_EQ(*ParseBytes("1000"), 1000);
  EXPECT_EQ(*ParseBytes("1k"), 1024);
  EXPECT_EQ(*ParseBytes("3G"), int64_t{3} << 30);
  for (const char* bad : {"", "K", "-1", "1.5M", "1T", "10 M", "99999999999"}) {
    EXPECT_THAT(std::string(ParseBytes(bad).status().message()), HasSubstr("number of bytes"))
        << bad;
  }
}

}  // namespace
}  // namespace muster
