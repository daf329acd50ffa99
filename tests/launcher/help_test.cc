#include "launcher/help_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "launcher/man_page.h"
#include "launcher/option_table.h"

namespace muster {
namespace {

std::string Content(const char* path) {
  std::ifstream file(path);
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

TEST(Help, NamesEveryOptionAndFitsATerminal) {
  std::string help = RunHelpText();
  for (const OptionSpec& spec : RunOptions()) {
    bool is_listed = help.find(absl::StrCat("--", spec.name, " ")) != help.npos ||
                     help.find(absl::StrCat("--", spec.name, "\n")) != help.npos;
    EXPECT_EQ(is_listed, spec.kind != OptionKind::kRefused) << spec.name;
  }
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
}

TEST(Help, IsTheRecordedOne) {
  EXPECT_EQ(RunHelpText(), Content("tests/launcher/run_help.txt"))
      << "if that is meant: bazel-bin/launcher/muster run --help > tests/launcher/run_help.txt";
  EXPECT_EQ(HelpText(), Content("tests/launcher/help.txt"))
      << "if that is meant: bazel-bin/launcher/muster help > tests/launcher/help.txt";
}

TEST(Help, TheDocumentIsMadeFromTheTable) {
  EXPECT_EQ(CommandsDocument(), Content("docs/COMMANDS.md"))
      << "run: bazel run //launcher:commands_document > docs/COMMANDS.md";
}

TEST(ManPage, IsTheOneThatIsShipped) {
  EXPECT_EQ(ManPage(), Content("packaging/man/muster-run.1"))
      << "run: bazel run //launcher:commands_document -- man > packaging/man/muster-run.1";
}

TEST(ManPage, ThoseOfTheOtherCommandsAreShippedToo) {
  for (const CommandSpec& command : CommandSpecs()) {
    const std::string path = absl::StrCat("packaging/man/muster-", command.name, ".1");
    EXPECT_EQ(CommandManPage(command), Content(path.c_str()))
        << "run: bazel run //launcher:commands_document -- man " << command.name << " > " << path;
  }
}

TEST(Help, OfTheOtherCommandsFitsATerminal) {
  for (const CommandSpec& command : CommandSpecs()) {
    std::istringstream lines(CommandHelpText(command));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
  }
}

}  // namespace
}  // namespace muster
