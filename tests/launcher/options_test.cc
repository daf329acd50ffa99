#include "launcher/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

using Words = std::vector<std::string>;

std::string ProblemOf(const Words& words, const EnvMap& env = {}) {
  return std::string(ParseOptions(words, env).status().message());
}

// A value that the option takes, and one that it refuses ("" when it takes any).
struct Sample {
  const char* good;
  const char* bad;
};

const std::map<std::string, Sample>& Samples() {
  static const auto& samples = *new std::map<std::string, Sample>{
      {"nproc-per-node", {"3", "zero"}},
      {"module", {"1", "maybe"}},
      {"no-python", {"yes", "2x"}},
      {"role", {"actor", ""}},
      {"virtual-local-rank", {"ON", "perhaps"}},
      {"stdin", {"0", "all"}},
      {"numa-binding", {"exclusive", "nodes"}},
      {"run-path", {"true", "x"}},
      {"event-log-handler", {"null", "console"}},
      {"print-completion", {"bash", "tcsh"}},
      {"start-method", {"fork", "thread"}},
      {"nnodes", {"1:4", "4:1"}},
      {"standalone", {"true", "-"}},
      {"rdzv-backend", {"c10d", "pigeon"}},
      {"rdzv-endpoint", {"a:1", ""}},
      {"rdzv-id", {"job", ""}},
      {"rdzv-conf", {"timeout=3", "timeout"}},
      {"node-rank", {"2", "-1"}},
      {"master-addr", {"10.0.0.1", "a b"}},
      {"master-port", {"29501", "65536"}},
      {"local-addr", {"10.0.0.2", "x:1"}},
      {"node-id", {"n1", ""}},
      {"topology-key", {"rack2", ""}},
      {"join-policy", {"restart", "later"}},
      {"node-unit", {"2", "0"}},
      {"max-node-failures", {"3", "x"}},
      {"node-failure-window", {"30m", "0"}},
      {"fencing", {"strict", "none"}},
      {"master-loss-timeout", {"10m", "0"}},
      {"exit-barrier-timeout", {"1m", "0"}},
      {"max-restarts", {"3", "-1"}},
      {"shutdown-timeout", {"10", "-1"}},
      {"max-start-failures", {"3", "-1"}},
      {"fatal-exit-codes", {"3,64-78", "0"}},
      {"stall-timeout", {"30s", "x"}},
      {"max-restart-delay", {"2m", "x"}},
      {"orphan-grace", {"200ms", "x"}},
      {"signals-to-handle", {"TERM,INT", "SIGFOO"}},
      {"signals-to-forward", {"none", "KILL"}},
      {"monitor-interval", {"0.2", "0"}},
      {"log-dir", {"/tmp", ""}},
      {"redirects", {"0:3,1:1", "7"}},
      {"tee", {"3", "both"}},
      {"log-line-prefix-template", {"[${rank}]", ""}},
      {"log-max-bytes", {"10M", "1T"}},
      {"log-max-files", {"3", "0"}},
      {"local-ranks-filter", {"0,1", "zero"}},
      {"duplicate-stdout-filters", {"a,b", ""}},
      {"duplicate-stderr-filters", {"a,,b", ""}},
      {"tls-ca", {"ca.pem", ""}},
      {"tls-cert", {"node.pem", ""}},
      {"tls-key", {"node.key", ""}},
      {"tls-server-name", {"master.example.org", ""}},
      {"token-file", {"token", ""}},
      {"allowed-peers", {"*.example.org,10.0.0.1", "a,,b"}},
      {"require-auth", {"yes", "maybe"}},
      {"log-level", {"INFO", "loud"}},
      {"report-file", {"report.json", ""}},
      {"termination-log", {"/dev/termination-log", ""}},
      {"dry-run", {"no", "nah"}},
      {"version", {"no", "nah"}},
  };
  return samples;
}

class EachOption : public ::testing::TestWithParam<const OptionSpec*> {
 protected:
  const OptionSpec& spec() const { return *GetParam(); }
  Sample sample() const { return Samples().at(spec().name); }
  std::string dashed() const { return absl::StrCat("--", spec().name); }
  std::string underscored() const {
    return absl::StrCat("--", absl::StrReplaceAll(spec().name, {{"-", "_"}}));
  }
};

TEST_P(EachOption, IsTakenWithDashesAndUnderscoresBlankAndEqualsSign) {
  std::string good = sample().good;
  for (const std::string& name : {dashed(), underscored()}) {
    absl::StatusOr<Options> options = ParseOptions({name + "=" + good, "p"}, {});
    ASSERT_TRUE(options.ok()) << options.status();
    EXPECT_EQ(options->text(spec().name), good);
    EXPECT_EQ(options->at(spec().name).source, Source::kCommandLine);
    EXPECT_EQ(options->program, "p");
    if (spec().kind == OptionKind::kSwitch) {
      options = ParseOptions({name, "p"}, {});
      ASSERT_TRUE(options.ok()) << options.status();
      EXPECT_TRUE(options->on(spec().name));
    } else {
      options = ParseOptions({name, good, "p"}, {});
      ASSERT_TRUE(options.ok()) << options.status();
      EXPECT_EQ(options->text(spec().name), good);
    }
    EXPECT_EQ(options->program, "p");
  }
}

TEST_P(EachOption, HasADefaultThatIsGood) {
  Options options = ParseOptions({"p"}, {}).value();
  EXPECT_EQ(options.text(spec().name), spec().default_text);
  EXPECT_EQ(options.at(spec().name).source, Source::kDefault);
  if (*spec().default_text != 0 && spec().check != nullptr) {
    EXPECT_TRUE(spec().check(spec().default_text).ok());
  }
}

TEST_P(EachOption, IsTakenFromItsVariableAndTheCommandLineWins) {
  if (!spec().has_pet) return;
  EnvMap env = {{PetVariable(spec()), sample().good}};
  Options options = ParseOptions({"p"}, env).value();
  EXPECT_EQ(options.text(spec().name), sample().good);
  EXPECT_EQ(options.at(spec().name).from, PetVariable(spec()));
  std::string other = spec().kind == OptionKind::kSwitch ? "0" : sample().good;
  options = ParseOptions({dashed() + "=" + other, "p"}, env).value();
  EXPECT_EQ(options.text(spec().name), other);
  EXPECT_EQ(options.at(spec().name).source, Source::kCommandLine);
}

TEST_P(EachOption, BadValuesAreRefusedByTheNameTheyCameUnder) {
  if (*sample().bad == 0) return;
  EXPECT_THAT(ProblemOf({absl::StrCat(dashed(), "=", sample().bad), "p"}),
              StartsWith(dashed() + ": "));
  if (!spec().has_pet) return;
  EXPECT_THAT(ProblemOf({"p"}, {{PetVariable(spec()), sample().bad}}),
              StartsWith(PetVariable(spec()) + ": "));
}

TEST_P(EachOption, AnEmptyVariableIsAnErrorUnlessItIsOtherProgramsToo) {
  const std::string own = PetVariable(spec());
  const std::string other = spec().variable;
  const std::string problem = " is set and empty: give it a value or unset it";
  if (!own.empty()) {
    EXPECT_EQ(ProblemOf({"p"}, {{own, ""}}), own + problem);
  }
  if (other.empty()) return;
  EXPECT_EQ(ProblemOf({"p"}, {{other, ""}}),
            absl::StartsWith(other, "MUSTER_") ? other + problem : "");
}

TEST_P(EachOption, AnEmptyValueIsAnErrorUnlessItSaysSomething) {
  const std::string problem = ProblemOf({absl::StrCat(dashed(), "="), "p"});
  EXPECT_EQ(problem.empty(), spec().may_be_empty) << problem;
  if (problem.empty()) return;
  EXPECT_THAT(problem, StartsWith(dashed() + " is empty: give "));
}

TEST_P(EachOption, TheLastOfTwoCounts) {
  if (spec().kind == OptionKind::kSwitch) {
    Options options = ParseOptions({dashed(), dashed() + "=no", "p"}, {}).value();
    EXPECT_FALSE(options.on(spec().name));
  } else if (*spec().default_text != 0) {
    Options options =
        ParseOptions({dashed(), spec().default_text, dashed(), sample().good, "p"}, {}).value();
    EXPECT_EQ(options.text(spec().name), sample().good);
  }
}

TEST_P(EachOption, SaysWhatItIs) {
  EXPECT_GT(std::string(spec().help).size(), 10u);
  EXPECT_EQ(std::string(spec().help).back(), '.');
  EXPECT_EQ(*spec().metavar == 0, spec().kind == OptionKind::kSwitch);
}

std::vector<const OptionSpec*> Available() {
  std::vector<const OptionSpec*> specs;
  for (const OptionSpec& spec : RunOptions()) {
    if (spec.kind != OptionKind::kRefused) specs.push_back(&spec);
  }
  return specs;
}

INSTANTIATE_TEST_SUITE_P(Table, EachOption, ::testing::ValuesIn(Available()), [](const auto& each) {
  return absl::StrReplaceAll(each.param->name, {{"-", "_"}});
});

TEST(Options, NamesAndLettersAreUnique) {
  std::set<std::string> names;
  std::set<char> letters = {'h'};
  for (const OptionSpec& spec : RunOptions()) {
    EXPECT_TRUE(names.insert(spec.name).second) << spec.name;
    EXPECT_TRUE(spec.letter == 0 || letters.insert(spec.letter).second) << spec.letter;
  }
}

TEST(Options, NothingBehindTheProgramIsLookedAt) {
  Words rest = {"--help", "-m", "--", "--nosuch", "-t", "3", "", "--log"};
  Words words = {"--role", "r", "train.py"};
  words.insert(words.end(), rest.begin(), rest.end());
  Options options = ParseOptions(words, {}).value();
  EXPECT_EQ(options.program, "train.py");
  EXPECT_EQ(options.arguments, rest);
  EXPECT_FALSE(options.help);
  EXPECT_FALSE(options.on("module"));
}

TEST(Options, ADoubleDashEndsTheOptionsOnce) {
  Options options = ParseOptions({"--role=r", "--", "--odd-name", "--", "x"}, {}).value();
  EXPECT_EQ(options.program, "--odd-name");
  EXPECT_THAT(options.arguments, ElementsAre("--", "x"));
}

TEST(Options, LettersStandAloneTogetherOrWithTheirValue) {
  Options options = ParseOptions({"-mr3", "-t", "1", "p"}, {}).value();
  EXPECT_TRUE(options.on("module"));
  EXPECT_EQ(options.text("redirects"), "3");
  EXPECT_EQ(options.text("tee"), "1");
  EXPECT_THAT(ProblemOf({"-x", "p"}), HasSubstr("unknown option '-x'"));
  EXPECT_THAT(ProblemOf({"-r"}), HasSubstr("-r needs a value"));
}

TEST(Options, UnambiguousAbbreviationsWork) {
  Options options = ParseOptions({"--nproc", "2", "--max_r=1", "--stand", "p"}, {}).value();
  EXPECT_EQ(options.text("nproc-per-node"), "2");
  EXPECT_EQ(options.text("max-restarts"), "1");
  EXPECT_TRUE(options.on("standalone"));
  EXPECT_EQ(ProblemOf({"--log", "x", "p"}),
            "ambiguous option --log: it could be --log-dir, --log-line-prefix-template, "
            "--logs-specs");
}

TEST(Options, OurOptionsTakeNoAbbreviationFromTorchrun) {
  // --node is --node-rank in torchrun, whatever else begins like that here.
  EXPECT_EQ(ParseOptions({"--node", "0", "p"}, {})->at("node-rank").source, Source::kCommandLine);
  EXPECT_EQ(ParseOptions({"--signals", "TERM", "p"}, {})->text("signals-to-handle"), "TERM");
}

TEST(Options, TypingErrorsAreNamedWithWhatWasMeant) {
  EXPECT_EQ(ProblemOf({"--npoc-per-node", "2", "p"}),
            "unknown option '--npoc-per-node': did you mean --nproc-per-node?");
  EXPECT_EQ(ProblemOf({"--max-restart-count=2", "p"}),
            "unknown option '--max-restart-count': did you mean --max-restarts?");
  EXPECT_THAT(ProblemOf({"--zzzzzzzz", "p"}), HasSubstr("'muster run --help' lists the options"));
}

TEST(Options, AMissingValueIsNotTakenFromTheNextOption) {
  EXPECT_THAT(ProblemOf({"--role", "--standalone", "p"}), StartsWith("--role needs a value"));
  EXPECT_THAT(ProblemOf({"--role"}), StartsWith("--role needs a value"));
  EXPECT_EQ(ParseOptions({"--role=--standalone", "p"}, {})->text("role"), "--standalone");
  EXPECT_THAT(ProblemOf({"--max-restarts", "-1", "p"}), StartsWith("--max-restarts: '-1'"));
}

TEST(Options, ValuesArriveAsTheyWereWritten) {
  for (const char* value : {"[x]", "{}", "a,b", "\"q\"", "a=b", " ", "%", "$$"}) {
    absl::StatusOr<Options> options =
        ParseOptions({"--log-line-prefix-template", value, "--topology-key", value, "p"}, {});
    ASSERT_TRUE(options.ok()) << options.status();
    EXPECT_EQ(options->text("log-line-prefix-template"), value);
    EXPECT_EQ(options->text("topology-key"), value);
  }
  EXPECT_EQ(ParseOptions({"--rdzv-id=", "p"}, {})->text("rdzv-id"), "");
  EXPECT_EQ(ParseOptions({"--rdzv-id=", "p"}, {})->program, "p");
}

TEST(Options, OtherVariablesComeAfterPetAndBeforeTheDefault) {
  EnvMap env = {{"LOGLEVEL", "INFO"}, {"TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "7"}};
  Options options = ParseOptions({"p"}, env).value();
  EXPECT_EQ(options.text("log-level"), "INFO");
  EXPECT_EQ(options.at("shutdown-timeout").from, "TORCH_ELASTIC_SHUTDOWN_TIMEOUT");
  env["PET_LOG_LEVEL"] = "error";
  EXPECT_EQ(ParseOptions({"p"}, env)->text("log-level"), "error");
  EXPECT_THAT(ProblemOf({"p"}, {{"TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "-1"}}),
              StartsWith("TORCH_ELASTIC_SHUTDOWN_TIMEOUT: "));
  EXPECT_EQ(ParseOptions({"p"}, {{"LOGLEVEL", ""}})->text("log-level"), "warning");
}

TEST(Options, WhatMakesNoSenseHereIsRefusedWithAReason) {
  absl::Status status = ParseOptions({"--logs-specs", "mine", "p"}, {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()),
              StartsWith("--logs-specs is refused, it names a class in Python"));
  status = ParseOptions({"p"}, {{"PET_EVENT_LOG_HANDLER", "console"}}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
}

TEST(Options, SomeHaveNoVariable) {
  EXPECT_EQ(ParseOptions({"p"}, {{"PET_PRINT_COMPLETION", "bash"}})->text("print-completion"), "");
  EXPECT_THAT(UnknownPetVariables({{"PET_PRINT_COMPLETION", "bash"}}),
              ElementsAre(StartsWith("PET_PRINT_COMPLETION belongs to no option")));
}

TEST(Options, HelpWinsOverEverythingElse) {
  for (const Words& words : {Words{"--help"}, Words{"-h"}, Words{"--role", "r", "-h", "p"}}) {
    EXPECT_TRUE(ParseOptions(words, {{"PET_NNODES", ""}})->help);
  }
}

TEST(Options, UnknownPetVariablesAreReported) {
  EXPECT_THAT(UnknownPetVariables({{"PET_NPROC", "1"}, {"PET_ROLE", "r"}, {"PETER", "x"}}),
              ElementsAre("PET_NPROC belongs to no option and is ignored: did you mean "
                          "PET_NPROC_PER_NODE?"));
  EXPECT_THAT(UnknownPetVariables({}), IsEmpty());
}

const CommandSpec& Command(absl::string_view name) {
  for (const CommandSpec& command : CommandSpecs()) {
    if (name == command.name) return command;
  }
  std::abort();
}

TEST(ControlOptions, MayStandOnBothSidesOfTheJob) {
  const Options options =
      ParseOptions({"-w", "digits", "-o", "json", "--rdzv_endpoint=node1"}, {}, Command("status"))
          .value();
  EXPECT_EQ(options.program, "digits");
  EXPECT_TRUE(options.arguments.empty());
  EXPECT_TRUE(options.on("watch"));
  EXPECT_EQ(options.text("output"), "json");
  EXPECT_EQ(options.text("rdzv-endpoint"), "node1");
}

TEST(ControlOptions, TheEndpointMayComeFromTheVariableOfTheAgents) {
  const EnvMap env = {{"PET_RDZV_ENDPOINT", "node1:1"}, {"PET_NNODES", "nonsense"}};
  EXPECT_EQ(ParseOptions({"digits"}, env, Command("stop"))->text("rdzv-endpoint"), "node1:1");
}

TEST(ControlOptions, OnesOfAnotherCommandAreUnknown) {
  EXPECT_EQ(ParseOptions({"--nnodes", "2"}, {}, Command("status")).status().message(),
            "unknown option '--nnodes': 'muster status --help' lists the options");
  EXPECT_EQ(ParseOptions({"--watch", "digits"}, {}, Command("stop")).status().message(),
            "unknown option '--watch': 'muster stop --help' lists the options");
}

}  // namespace
}  // namespace muster
