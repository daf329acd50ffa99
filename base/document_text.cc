#include "base/document_text.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace muster {
namespace {

constexpr size_t kColumns = 100;
constexpr size_t kHelpColumn = 34;

void AppendWrapped(absl::string_view text, size_t indent, std::string* out) {
  size_t column = indent;
  for (absl::string_view word : absl::StrSplit(text, ' ')) {
    if (column > indent && column + 1 + word.size() > kColumns) {
      absl::StrAppend(out, "\n", std::string(indent, ' '));
      column = indent;
    } else if (column > indent) {
      out->push_back(' ');
      ++column;
    }
    absl::StrAppend(out, word);
    column += word.size();
  }
  out->push_back('\n');
}

}  // namespace

void AppendHelpEntry(absl::string_view left, absl::string_view text, std::string* out) {
  absl::StrAppend(out, left);
  if (left.size() + 2 > kHelpColumn) {
    absl::StrAppend(out, "\n", std::string(kHelpColumn, ' '));
  } else {
    absl::StrAppend(out, std::string(kHelpColumn - left.size(), ' '));
  }
  AppendWrapped(text, kHelpColumn, out);
}

std::string Cell(absl::string_view text) { return absl::StrReplaceAll(text, {{"|", "\\|"}}); }

std::string CodeCell(absl::string_view text) {
  return text.empty() ? "" : absl::StrCat("`", Cell(text), "`");
}

std::string Roff(absl::string_view text) {
  std::string plain = absl::StrReplaceAll(text, {{"\\", "\\e"}, {"-", "\\-"}});
  return absl::StartsWith(plain, ".") || absl::StartsWith(plain, "'") ? "\\&" + plain : plain;
}

std::string RoffBold(absl::string_view text) { return absl::StrCat("\\fB", Roff(text), "\\fR"); }

}  // namespace muster
