#ifndef MUSTER_BASE_DOCUMENT_TEXT_H_
#define MUSTER_BASE_DOCUMENT_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"

// Pieces of the texts that programs make of their options: help, man page, Markdown. Pure.

namespace muster {

// One option of --help: `left` ("  --name VALUE") and, from column 34 on, `text`, in lines of at
// most 100 columns.
void AppendHelpEntry(absl::string_view left, absl::string_view text, std::string* out);

// `text` in a cell of a Markdown table, and there as code ("" stays "").
std::string Cell(absl::string_view text);
std::string CodeCell(absl::string_view text);

// `text` as roff prints it unchanged, and so in bold.
std::string Roff(absl::string_view text);
std::string RoffBold(absl::string_view text);

}  // namespace muster

#endif  // MUSTER_BASE_DOCUMENT_TEXT_H_
