// The scripts in the shells themselves: bash is always there, zsh and fish are tried where they are
// installed.

#include "launcher/completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace muster {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

std::string OutputOf(const std::string& command) {
  std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::string output;
  char buffer[4096];
  while (size_t size = fread(buffer, 1, sizeof(buffer), pipe.get())) output.append(buffer, size);
  return output;
}

std::string WrittenScript(const char* shell) {
  std::string path = absl::StrCat(::testing::TempDir(), "/completion.", shell);
  std::ofstream(path) << CompletionScript(shell);
  return path;
}

std::vector<std::string> Lines(const std::string& text) {
  return absl::StrSplit(text, '\n', absl::SkipEmpty());
}

// What bash offers for the last of `words`, which are as bash cuts them.
std::vector<std::string> InBash(const std::vector<std::string>& words) {
  std::string array;
  for (const std::string& word : words) absl::StrAppend(&array, " '", word, "'");
  std::string script = absl::StrCat("source ", WrittenScript("bash"), "\nCOMP_WORDS=(", array,
                                    ")\nCOMP_CWORD=", words.size() - 1,
                                    "\n_muster\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n");
  std::string path = ::testing::TempDir() + "/try.bash";
  std::ofstream(path) << script;
  return Lines(OutputOf("bash --norc --noprofile " + path + " 2>&1"));
}

TEST(Bash, CompletesCommandsAndOptions) {
  EXPECT_THAT(InBash({"muster", ""}),
              ElementsAre("run", "status", "stop", "drain", "check", "version", "help"));
  EXPECT_THAT(InBash({"muster", "v"}), ElementsAre("version"));
  EXPECT_THAT(InBash({"muster", "run", "--nnod"}), ElementsAre("--nnodes"));
  EXPECT_THAT(InBash({"/usr/bin/torchrun", "--nnod"}), ElementsAre("--nnodes"));
  EXPECT_THAT(InBash({"muster", "run", "--max_re"}),
              ElementsAre("--max-restarts", "--max-restart-delay"));
  EXPECT_THAT(InBash({"muster", "version", "--"}), IsEmpty());
}

TEST(Bash, CompletesValuesBehindABlankAndAnEqualsSign) {
  EXPECT_THAT(InBash({"muster", "run", "--numa-binding", ""}),
              UnorderedElementsAre("node", "socket", "exclusive", "core-complex"));
  EXPECT_THAT(InBash({"muster", "run", "--numa_binding", "=", "ex"}), ElementsAre("exclusive"));
  EXPECT_THAT(InBash({"muster", "run", "--fencing", "="}), UnorderedElementsAre("token", "strict"));
  EXPECT_THAT(InBash({"muster", "run", "--nnodes", ""}), IsEmpty());
  EXPECT_THAT(InBash({"muster", "run", "--nnodes", "2", "--fen"}), ElementsAre("--fencing"));
  EXPECT_THAT(InBash({"muster", "run", "--standalone", "--fen"}), ElementsAre("--fencing"));
}

TEST(Bash, LeavesTheProgramsOwnWordsAlone) {
  EXPECT_THAT(InBash({"muster", "run", "--tee", "3", "prog", "--nnod"}), Not(Contains("--nnodes")));
  EXPECT_THAT(InBash({"muster", "run", "--", "--nnod"}), Not(Contains("--nnodes")));
}

TEST(Bash, OffersEveryOption) {
  std::vector<std::string> offered = InBash({"muster", "run", "--"});
  for (const OptionSpec& spec : RunOptions()) {
    if (spec.kind == OptionKind::kRefused) continue;
    EXPECT_THAT(offered, Contains(absl::StrCat("--", spec.name)));
  }
}

// Asks a zsh in a terminal of its own, with compadd in place that tells what it is given.
constexpr char kAskZsh[] = R"(zmodload zsh/zpty
zpty shell zsh -f -i
cat > $3 <<'END'
PROMPT=
autoload compinit
compinit -D -u
source $MUSTER_COMPLETION
bindkey '^I' complete-word
mark () { echo -E - $'\0' }
compprefuncs=( mark )
comppostfuncs=( mark exit )
zstyle ':completion:*' insert-tab false
compadd () {
  if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then
    builtin compadd "$@"
    return $?
  fi
  typeset -a found
  builtin compadd -A found "$@"
  (( $#found )) && print -l -- $found
}
echo ready
END
zpty -w shell "MUSTER_COMPLETION=$1 source $3"
repeat 4; do
  zpty -r shell line
  [[ $line == ready* ]] && break
done
zpty -w -n shell "$2"$'\t'
integer marks=0
while zpty -r shell; do :; done | while IFS= read -r line; do
  if [[ $line == *$'\0\r' ]]; then
    (( marks++ )) && exit 0
    continue
  fi
  (( marks )) && print -r -- "${line%$'\r'}"
done
)";

TEST(Zsh, CompletesOptionsAndValues) {
  if (access("/usr/bin/zsh", X_OK) != 0) GTEST_SKIP() << "zsh is not installed";
  const std::string path = ::testing::TempDir() + "/ask.zsh";
  std::ofstream(path) << kAskZsh;
  auto in_zsh = [&path](const std::string& line) {
    return Lines(OutputOf(absl::StrCat("timeout 50 zsh -f ", path, " ", WrittenScript("zsh"), " '",
                                       line, "' ", path, ".rc 2>&1")));
  };
  EXPECT_THAT(in_zsh("muster "),
              UnorderedElementsAre("run", "status", "stop", "drain", "check", "version", "help"));
  EXPECT_THAT(in_zsh("muster run --numa-b"), Contains("--numa-binding"));
  EXPECT_THAT(in_zsh("torchrun --numa-b"), Contains("--numa-binding"));
  EXPECT_THAT(in_zsh("muster run --fencing=str"), ElementsAre("strict"));
  EXPECT_THAT(in_zsh("muster run --nnodes 2 --fencing "), UnorderedElementsAre("strict", "token"));
  EXPECT_THAT(in_zsh("muster run prog --numa-b"), Not(Contains("--numa-binding")));
}

TEST(Fish, CompletesOptionsAndValues) {
  if (access("/usr/bin/fish", X_OK) != 0) GTEST_SKIP() << "fish is not installed";
  auto in_fish = [](const std::string& line) {
    return OutputOf(absl::StrCat("fish --no-config -c 'source ", WrittenScript("fish"),
                                 "; complete -C \"", line, "\"' 2>&1"));
  };
  EXPECT_THAT(in_fish("muster run --nnod"), ::testing::StartsWith("--nnodes\t"));
  EXPECT_THAT(in_fish("torchrun --fencing str"), ::testing::StartsWith("strict"));
  EXPECT_THAT(in_fish("muster run prog --nnod"), ::testing::Not(::testing::HasSubstr("--nnodes")));
}

TEST(ListedValues, AreTheLowerCaseWordsOfTheMetavar) {
  EXPECT_THAT(ListedValues(*FindSpec("stdin")), ElementsAre("inherit", "none"));
  EXPECT_THAT(ListedValues(*FindSpec("nproc-per-node")), ElementsAre("cpu", "gpu", "auto"));
  EXPECT_THAT(ListedValues(*FindSpec("role")), IsEmpty());
}

}  // namespace
}  // namespace muster
