#ifndef MUSTER_BASE_ONE_LINE_H_
#define MUSTER_BASE_ONE_LINE_H_

#include <string>
#include <string_view>

namespace muster {

// `text` with every control byte (line breaks, those of escape sequences) replaced by a blank, and
// blanks at its end removed: safe to show on a terminal as one line. Bytes above 127 stay.
std::string OneLine(std::string_view text);

}  // namespace muster

#endif  // MUSTER_BASE_ONE_LINE_H_
