#ifndef MUSTER_AGENT_REPORT_TEXT_H_
#define MUSTER_AGENT_REPORT_TEXT_H_

#include <string>
#include <string_view>
#include <vector>

namespace muster {

// How text of workers is made fit for a report. A column is one Unicode character. All pure.

// One line without line break: control bytes become blanks, bytes that are not UTF-8 '?'; of text
// that a carriage return overwrites (progress bars) only the last remains, as on a terminal.
std::string CleanLine(std::string_view line);

// Clean lines of a text.
std::vector<std::string> CleanLines(std::string_view text);

// `line`, cut to `columns` with '…' at its end where it is longer. `line` is UTF-8.
std::string CutToColumns(const std::string& line, int columns);

// `line` in pieces of at most `columns`, broken at blanks where there are some. At least one piece.
// `line` is UTF-8.
std::vector<std::string> WrapToColumns(const std::string& line, int columns);

}  // namespace muster

#endif  // MUSTER_AGENT_REPORT_TEXT_H_
