// Every option with every kind of wrong value, as a flag and as a variable, given to the real
// program: one line on stderr that names where it came from, nothing on stdout, exit code 2 or 78.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "launcher/option_table.h"
#include "tests/launcher/run_program.h"

namespace muster {
namespace {

using Values = std::vector<std::string>;

// Wrong for whatever has a form.
const Values& AlwaysWrong() {
  static const auto& values =
      *new Values{" ", "\n", "\x01\x02", "\xff\xfe", "%s%n", std::string(20000, 'x')};
  return values;
}

// And for each option by its name. Those with no entry take any text.
const std::map<std::string, Values>& Wrong() {
  static const auto& values = *new std::map<std::string, Values>{
      {"nproc-per-node", {"0", "-1", "1.5", "1e3", "65536", "99999999999999999999", "CPU", "xpu"}},
      {"module", {"x", "1.0"}},
      {"run-path", {"x"}},
      {"no-python", {"x"}},
      {"role", {""}},
      {"virtual-local-rank", {"x"}},
      {"numa-binding", {"nodes", "none", "NODE"}},
      {"stdin", {"-1", "all", "1000"}},
      {"start-method", {"thread", "Spawn"}},
      {"nnodes", {"0", "-1", "2:1", "1:2:3", ":", "1:", ":2", "a:b", "0:1", "1.5", "99999999999"}},
      {"standalone", {"x"}},
      {"rdzv-backend", {"pigeon", "etcd-v3", "C10D"}},
      {"rdzv-endpoint",
       {"a:b", "a:65536", "a:-1", "[::1", "[x]:1", "a b", "host:99999999999", ":::1:"}},
      {"rdzv-conf",
       {"x", "=1", "timeout=", "timeout=0", "timeout=-1", "timeout=x", "join_timout=1",
        "is_host=maybe", "timeout=1,,", "store_type=file"}},
      {"node-rank", {"-1", "1.5", "x", "5", "99999999999"}},
      {"master-addr", {"a b", "a:1", "[::1"}},
      {"master-port", {"-1", "65536", "x", "1.5"}},
      {"local-addr", {"a b", "a:1"}},
      {"node-id", {""}},
      {"join-policy", {"later"}},
      {"node-unit", {"0", "-1", "x"}},
      {"max-node-failures", {"-1", "x"}},
      {"node-failure-window", {"0", "-1", "x"}},
      {"fencing", {"none"}},
      {"master-loss-timeout", {"0", "-1", "x", "1y", "1e999", "nan"}},
      {"exit-barrier-timeout", {"0", "-1", "x"}},
      {"max-restarts", {"-1", "x", "1.5", "99999999999"}},
      {"max-start-failures", {"-1", "x", "1.5", "99999999999"}},
      {"fatal-exit-codes", {"0", "256", "x", "9-3", "1-256", "3,", ",", "1-2-3", "99999999999"}},
      {"stall-timeout", {"-1", "x", "inf", "nan"}},
      {"max-restart-delay", {"-1", "x", "inf", "nan"}},
      {"shutdown-timeout", {"-1", "x", "inf", "nan"}},
      {"orphan-grace", {"-1", "x"}},
      {"signals-to-handle", {"", "SIGFOO", "KILL", "15", "TERM,", "STOP"}},
      {"signals-to-forward", {"", "SIGFOO", "KILL", "TERM,,INT"}},
      {"monitor-interval", {"0", "-1", "x"}},
      {"redirects", {"4", "-1", "1:4", "a:1", "0:1,", "1:1:1", "x"}},
      {"tee", {"4", "-1", "1:4", "a:1", "0:1,", "x"}},
      {"log-max-bytes", {"", "-1", "1.5M", "1T", "K", "99999999999"}},
      {"log-max-files", {"0", "-1", "x", "1001"}},
      {"local-ranks-filter", {"x", "0,", "-1", "0:1"}},
      {"duplicate-stdout-filters", {}},
      {"duplicate-stderr-filters", {}},
      {"tls-ca", {""}},
      {"tls-cert", {""}},
      {"tls-key", {""}},
      {"tls-server-name", {""}},
      {"token-file", {""}},
      {"allowed-peers", {""}},
      {"require-auth", {"x"}},
      {"log-level", {"loud", "-1"}},
      {"dry-run", {"x"}},
      {"version", {"x"}},
      {"event-log-handler", {"console", "x"}},
      {"print-completion", {"tcsh", "x"}},
  };
  return values;
}

void ExpectRefused(const Values& words, const std::vector<std::string>& env,
                   const std::string& name) {
  Outcome outcome = RunProgram("launcher/muster", words, env);
  SCOPED_TRACE(absl::StrCat(name, ": ", outcome.err.substr(0, 300)));
  EXPECT_TRUE(outcome.code == 2 || outcome.code == 78) << outcome.code;
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, ::testing::StartsWith("muster: "));
  EXPECT_THAT(outcome.err, ::testing::HasSubstr(name));
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1);
  EXPECT_LT(outcome.err.size(), 500u);
}

std::vector<const OptionSpec*> Checked() {
  std::vector<const OptionSpec*> specs;
  for (const OptionSpec& spec : RunOptions()) {
    if (spec.check != nullptr || Wrong().contains(spec.name)) specs.push_back(&spec);
  }
  return specs;
}

class MalformedValues : public ::testing::TestWithParam<const OptionSpec*> {};

TEST_P(MalformedValues, GetOneLineAndExitCode2Or78) {
  const OptionSpec& spec = *GetParam();
  auto wrong = Wrong().find(spec.name);
  ASSERT_NE(wrong, Wrong().end()) << "no malformed value of --" << spec.name << " is in the table";
  Values values = wrong->second;
  // Names may be odd, filters may be anything.
  const bool any_text = spec.check == nullptr || values == Values{""} || values.empty();
  if (!any_text || spec.name == std::string("rdzv-endpoint")) {
    values.insert(values.end(), AlwaysWrong().begin(), AlwaysWrong().end());
  }
  // Blanks around items mean nothing there.
  if (spec.name == std::string("rdzv-conf")) {
    std::erase_if(values, [](const std::string& value) { return value == " " || value == "\n"; });
  }
  const std::string option = absl::StrCat("--", spec.name);
  for (const std::string& value : values) {
    ExpectRefused({"run", absl::StrCat(option, "=", value), "true"}, {}, option);
    for (const std::string& variable : {PetVariable(spec), std::string(spec.variable)}) {
      // torchrun's other variables count only when they are not empty.
      if (variable.empty() || (value.empty() && variable == spec.variable)) continue;
      ExpectRefused({"run", "true"}, {absl::StrCat(variable, "=", value)}, variable);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Table, MalformedValues, ::testing::ValuesIn(Checked()),
                         [](const auto& each) {
                           return absl::StrReplaceAll(each.param->name, {{"-", "_"}});
                         });

TEST(MalformedValues, OfSchedulersAreNamed) {
  const std::vector<std::string> step = {"SLURM_STEP_ID=0", "SLURM_NNODES=2", "SLURM_JOB_ID=7"};
  for (const char* variable :
       {"SLURM_NNODES=x", "SLURM_NNODES=0", "SLURM_NODEID=-1", "SLURM_NODEID=x",
        "SLURM_JOB_NODELIST=a[1", "SLURM_JOB_NODELIST=a[3-1]", "SLURM_JOB_NODELIST=a,,b",
        "SLURM_TASKS_PER_NODE=4(x2)"}) {
    std::vector<std::string> env = {variable};
    env.insert(env.end(), step.begin(), step.end());
    const std::string text = variable;
    ExpectRefused({"run", "true"}, env, text.substr(0, text.find('=')));
  }
  ExpectRefused({"run", "--nnodes=2", "true"}, {"JOB_COMPLETION_INDEX=x"}, "JOB_COMPLETION_INDEX");
}

}  // namespace
}  // namespace muster
