#ifndef MUSTER_BASE_JSON_TEXT_H_
#define MUSTER_BASE_JSON_TEXT_H_

#include <string>
#include <string_view>

namespace muster {

// `text` as a JSON string, quotes included. Bytes that are not UTF-8 become U+FFFD, so that every
// reader takes the result.
std::string JsonString(std::string_view text);

}  // namespace muster

#endif  // MUSTER_BASE_JSON_TEXT_H_
