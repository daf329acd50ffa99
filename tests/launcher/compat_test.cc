// docs/COMPAT.md against the option table: each option is in it, in its place, with its variable.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "launcher/option_table.h"

namespace muster {
namespace {

using Cells = std::vector<std::string>;

// The rows of the table below `heading`: the first cell to all of them.
std::map<std::string, Cells> Rows(const std::string& heading) {
  std::ifstream file("docs/COMPAT.md");
  std::map<std::string, Cells> rows;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (absl::StartsWith(line, "## ")) inside = line == "## " + heading;
    if (!inside || !absl::StartsWith(line, "| `")) continue;
    Cells cells = absl::StrSplit(line, '|');
    for (std::string& cell : cells) {
      cell = cell.size() < 2 ? "" : cell.substr(1, cell.size() - 2);
    }
    cells.erase(cells.begin());
    EXPECT_TRUE(rows.emplace(cells.front(), cells).second) << cells.front() << " is there twice";
  }
  return rows;
}

std::string Code(const std::string& text) {
  return text.empty() ? "" : absl::StrCat("`", text, "`");
}

void ExpectRows(const std::string& heading, bool in_torchrun) {
  std::map<std::string, Cells> rows = Rows(heading);
  rows.erase("`--help`");
  for (const OptionSpec& spec : RunOptions()) {
    const std::string name = absl::StrCat("`--", spec.name, "`");
    if (spec.in_torchrun != in_torchrun) continue;
    ASSERT_TRUE(rows.contains(name)) << name << " is missing below '" << heading << "'";
    EXPECT_EQ(rows[name][1], Code(PetVariable(spec)));
    if (in_torchrun) {
      EXPECT_EQ(rows[name][2] == "refused", spec.kind == OptionKind::kRefused) << name;
    }
    rows.erase(name);
  }
  for (const auto& [name, cells] : rows) ADD_FAILURE() << name << " is no such option";
}

TEST(Compat, NamesEveryOptionOfTorchrun) { ExpectRows("Options", true); }

TEST(Compat, MarksOurOwnOptions) { ExpectRows("muster's own options", false); }

// The item of a list that begins so, its lines joined.
std::string Item(const std::string& beginning) {
  std::ifstream file("docs/COMPAT.md");
  std::string item;
  for (std::string line; std::getline(file, line);) {
    const bool begins = item.empty() && absl::StartsWith(line, beginning);
    const bool goes_on = !item.empty() && absl::StartsWith(line, "  ");
    if (!begins && !goes_on && !item.empty()) break;
    if (begins || goes_on) absl::StrAppend(&item, line, "\n");
  }
  return item;
}

TEST(Compat, NamesEveryOptionThatMayBeEmptyAndNoOther) {
  const std::string item = Item("* An empty value (`--rdzv-endpoint \"\"`)");
  ASSERT_FALSE(item.empty());
  for (const OptionSpec& spec : RunOptions()) {
    EXPECT_EQ(absl::StrContains(item, absl::StrCat("`--", spec.name, "`")), spec.may_be_empty)
        << spec.name;
  }
}

TEST(Compat, EveryVariableOfTheTableIsThere) {
  std::map<std::string, Cells> rows = Rows("Variables that torchrun reads");
  for (const OptionSpec& spec : RunOptions()) {
    if (*spec.variable == 0 || absl::StartsWith(spec.variable, "MUSTER_")) continue;
    EXPECT_TRUE(rows.contains(Code(spec.variable))) << spec.variable;
  }
}

}  // namespace
}  // namespace muster
