#include "rendezvous/musterd_config.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <vector>

#include "rendezvous/musterd_documents.h"
#include "rendezvous/musterd_table.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

absl::StatusOr<MusterdCommand> Read(const std::vector<std::string>& words, const EnvMap& env = {},
                                    const std::string& file = "") {
  return ReadMusterdCommand(words, env,
                            [&](const std::string& path) -> absl::StatusOr<std::string> {
                              if (path == "musterd.conf") return file;
                              return absl::InvalidArgumentError("--config: cannot read " + path);
                            });
}

std::string ListenOf(const std::vector<std::string>& words, const EnvMap& env = {},
                     const std::string& file = "") {
  const absl::StatusOr<MusterdCommand> command = Read(words, env, file);
  return command.ok() ? ToString(command->config.listen) : std::string(command.status().message());
}

TEST(MusterdConfig, EveryDefaultIsAValueOfItsOption) {
  const absl::StatusOr<MusterdCommand> command = Read({});
  ASSERT_TRUE(command.ok()) << command.status();
  EXPECT_EQ(command->action, MusterdAction::kServe);
  EXPECT_EQ(ToString(command->config.listen), "127.0.0.1:29400");
  EXPECT_EQ(command->config.log_level, LogLevel::kInfo);
  EXPECT_THAT(command->warnings, IsEmpty());
}

TEST(MusterdConfig, TheCommandLineWinsOverVariablesAndTheseOverTheFile) {
  const EnvMap env = {{"MUSTERD_LISTEN", "127.0.0.2:2"}};
  const std::string file = "# where\nlisten = \"127.0.0.3:3\"  # agents\n";
  const std::vector<std::string> config = {"--config", "musterd.conf"};
  EXPECT_EQ(ListenOf(config, {}, file), "127.0.0.3:3");
  EXPECT_EQ(ListenOf(config, env, file), "127.0.0.2:2");
  EXPECT_EQ(ListenOf({"--config=musterd.conf", "--listen=127.0.0.1:1"}, env, file), "127.0.0.1:1");
}

TEST(MusterdConfig, NamesMayHaveUnderscoresAndBeAbbreviated) {
  EXPECT_EQ(Read({"--log_format=json"})->config.log_format, LogFormat::kJson);
  EXPECT_EQ(Read({"--log-f", "json"})->config.log_format, LogFormat::kJson);
  EXPECT_EQ(Read({"--insec", "--listen", "0.0.0.0"})->config.listen.host, "0.0.0.0");
}

TEST(MusterdConfig, WhatIsAskedForIsKnown) {
  EXPECT_EQ(Read({"--check-config"})->action, MusterdAction::kCheck);
  EXPECT_EQ(Read({"--version"})->action, MusterdAction::kVersion);
  // Whatever else is wrong.
  EXPECT_EQ(Read({"-h", "--listen=:x"})->action, MusterdAction::kHelp);
}

TEST(MusterdConfig, MastersThatNameAnEtcdAreElected) {
  EXPECT_FALSE(Read({})->config.is_elected());
  const MusterdConfig config =
      Read({"--etcd-endpoints=a,b:1", "--etcd-prefix=/muster/blue", "--etcd-lease=3s", "--etcd-tls",
            "--etcd-ca=/ca", "--etcd-cert=/cert", "--etcd-key=/key", "--etcd-user=muster",
            "--etcd-password-file=/password"})
          ->config;
  EXPECT_TRUE(config.is_elected());
  EXPECT_EQ(EtcdName(config.election.etcd), "etcd at a:2379,b:1");
  EXPECT_EQ(config.election.prefix, "/muster/blue");
  EXPECT_EQ(config.election.lease, std::chrono::seconds(3));
  EXPECT_TRUE(config.election.etcd.tls);
  EXPECT_EQ(config.election.etcd.password_file, "/password");
}

TEST(MusterdConfig, AVariableOfNoOptionIsWarnedOf) {
  EXPECT_THAT(
      Read({}, {{"MUSTERD_LOG_LEVLE", "info"}, {"MUSTERD_SERVICE_HOST", "10.0.0.1"}})->warnings,
      ElementsAre("MUSTERD_LOG_LEVLE belongs to no option and is ignored: did you mean "
                  "MUSTERD_LOG_LEVEL?"));
}

struct BadInput {
  const char* name;
  std::vector<std::string> words;
  EnvMap env;
  std::string file;
  const char* message;
  absl::StatusCode code = absl::StatusCode::kInvalidArgument;
};

TEST(MusterdConfig, WrongInputIsNamedWithItsPlace) {
  const std::vector<std::string> config = {"--config", "musterd.conf"};
  const std::vector<BadInput> cases = {
      {"option", {"--listne", "x"}, {}, "", "did you mean --listen?"},
      {"nothing near", {"--zzzzzz"}, {}, "", "'musterd --help' lists"},
      {"ambiguous", {"--log", "x"}, {}, "", "--log-level, --log-format"},
      {"word", {"serve"}, {}, "", "unexpected word 'serve'"},
      {"no etcd", {"--etcd-user=x"}, {}, "", "--etcd-user has no meaning without --etcd-endpoints"},
      {"two stores",
       {"--etcd-endpoints=a"},
       {{"MUSTERD_STATE_DIR", "/state"}},
       "",
       "MUSTERD_STATE_DIR: masters that are elected keep the jobs' state in etcd "
       "(--etcd-endpoints): "
       "leave out one of them"},
      {"no key", {"--etcd-endpoints=a", "--etcd-tls", "--etcd-cert=c"}, {}, "", "its key"},
      {"no TLS", {"--etcd-endpoints=a", "--etcd-ca=c"}, {}, "", "TLS is not asked for"},
      {"no password", {"--etcd-endpoints=a", "--etcd-user=x"}, {}, "", "password come together"},
      {"twice", {"--etcd-endpoints=a,a"}, {}, "", "is given twice"},
      {"lease", {"--etcd-endpoints=a", "--etcd-lease=1s"}, {}, "", "2 s at least"},
      {"prefix", {"--etcd-endpoints=a", "--etcd-prefix=x/"}, {}, "", "is no prefix of keys"},
      {"two dashes", {"--"}, {}, "", "unexpected word '--'"},
      {"no value", {"--listen"}, {}, "", "--listen needs a value: ADDRESS[:PORT]"},
      {"an option as value", {"--listen", "--insecure"}, {}, "", "--listen needs a value"},
      {"empty value", {"--listen="}, {}, "", "--listen is empty: give ADDRESS[:PORT], or leave"},
      {"empty word", {"--config", ""}, {}, "", "--config is empty: give FILE, or leave it out"},
      {"empty variable", {}, {{"MUSTERD_STATE_DIR", ""}}, "", "MUSTERD_STATE_DIR is empty: give F"},
      {"empty in front of a full one",
       {},
       {{"MUSTERD_TOKEN_FILE", ""}, {"MUSTER_TOKEN_FILE", "t"}},
       "",
       "MUSTERD_TOKEN_FILE is empty"},
      {"the shared one is empty", {}, {{"MUSTER_TLS_CA", ""}}, "", "MUSTER_TLS_CA is empty"},
      {"empty switch",
       {},
       {{"MUSTERD_INSECURE", ""}},
       "",
       "is empty: give true or false, or leave"},
      {"quotes around nothing", config, {}, "etcd-user = \"\"\n", "etcd-user has no value"},
      {"port", {"--listen", "127.0.0.1:99999"}, {}, "", "--listen: "},
      {"level", {}, {{"MUSTERD_LOG_LEVEL", "loud"}}, "", "MUSTERD_LOG_LEVEL: 'loud'"},
      {"switch", {"--insecure=perhaps"}, {}, "", "--insecure: 'perhaps'"},
      {"no such file", {"--config", "/nowhere"}, {}, "", "cannot read /nowhere"},
      {"entry",
       config,
       {},
       "lisen = x\n",
       "musterd.conf:1: unknown entry 'lisen': did you mean listen?"},
      {"action in the file", config, {}, "\nversion = true\n", "musterd.conf:2: unknown entry"},
      {"section", config, {}, "[musterd]\n", "musterd.conf:1: '[musterd]' is not NAME = VALUE"},
      {"quotes", config, {}, "listen = \"127.0.0.1\n", "musterd.conf:1: the quotes of listen"},
      {"behind quotes", config, {}, "listen = \"127.0.0.1\" x\n", "the quotes of listen"},
      {"twice",
       config,
       {},
       "listen = 127.0.0.1\n\nlisten = ::1\n",
       "musterd.conf:3: listen is there already (musterd.conf:1)"},
      {"no value in the file", config, {}, "listen =\n", "listen has no value"},
      {"value in the file", config, {}, "log_format = xml\n", "musterd.conf:1: 'xml'"},
      {"binary file", config, {}, std::string("a\0b", 3), "is not a text"},
      {"long file", config, {}, std::string((1 << 20) + 1, '#'), "over 1 MiB"},
      {"line break", {"--log-level", "a\nb"}, {}, "", "'a b'"},
      {"open",
       {"--listen", "0.0.0.0"},
       {},
       "",
       "--insecure",
       absl::StatusCode::kFailedPrecondition},
  };
  for (const BadInput& each : cases) {
    SCOPED_TRACE(each.name);
    const absl::StatusOr<MusterdCommand> command = Read(each.words, each.env, each.file);
    EXPECT_EQ(command.status().code(), each.code);
    EXPECT_THAT(std::string(command.status().message()), HasSubstr(each.message));
    EXPECT_EQ(command.status().message().find('\n'), absl::string_view::npos);
  }
}

TEST(MusterdConfig, NoOptionIsEmptyWhereverItIsSaid) {
  for (const MusterdOption& option : MusterdOptions()) {
    SCOPED_TRACE(option.name);
    const std::string word = absl::StrCat("--", option.name, "=");
    EXPECT_THAT(std::string(Read({word}).status().message()), HasSubstr(" is empty: give "));
    if (option.set == nullptr) continue;
    const std::string variable = MusterdVariable(option);
    EXPECT_THAT(std::string(Read({}, {{variable, ""}}).status().message()),
                HasSubstr(variable + " is empty: give "));
  }
}

TEST(MusterdConfig, AnEmptyVariableThatIsOverruledIsNoMatter) {
  EXPECT_EQ(Read({"--state-dir=/state"}, {{"MUSTERD_STATE_DIR", ""}})->config.state_dir, "/state");
}

TEST(MusterdConfig, TheCheckShowsEachOptionWithItsSource) {
  const absl::StatusOr<MusterdCommand> command =
      Read({"--check-config", "--config=musterd.conf"}, {{"MUSTERD_INSECURE", "1"}},
           "log-format = json\n");
  ASSERT_TRUE(command.ok()) << command.status();
  const std::string text = MusterdSettingsText(*command);
  EXPECT_THAT(text, HasSubstr("listen = 127.0.0.1:29400  # default\n"));
  EXPECT_THAT(text, HasSubstr("insecure = 1  # MUSTERD_INSECURE\n"));
  EXPECT_THAT(text, HasSubstr("log-format = json  # musterd.conf:1\n"));
}

TEST(MusterdConfig, WhatTheCheckShowsIsAFileThatIsRead) {
  const std::string text = MusterdSettingsText(*Read({"--log-level=debug"}));
  const absl::StatusOr<MusterdCommand> command = Read({"--config=musterd.conf"}, {}, text);
  ASSERT_TRUE(command.ok()) << command.status();
  EXPECT_EQ(command->config.log_level, LogLevel::kDebug);
}

std::string Content(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(MusterdDocuments, AreMadeFromTheTable) {
  EXPECT_EQ(Content("docs/MUSTERD.md"), MusterdDocument())
      << "bazel run //rendezvous:musterd_document > docs/MUSTERD.md";
  EXPECT_EQ(Content("packaging/man/musterd.8"), MusterdManPage())
      << "bazel run //rendezvous:musterd_document -- man > packaging/man/musterd.8";
  for (const MusterdOption& option : MusterdOptions()) {
    EXPECT_THAT(MusterdHelp(), HasSubstr(std::string("  --") + option.name));
  }
}

}  // namespace
}  // namespace muster
