#ifndef MUSTER_CHECK_FIELDS_H_
#define MUSTER_CHECK_FIELDS_H_

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::check {

// What the ranks say to each other: keys and values, in order; a key may come again. Keys have no
// '=' and no line break. Pure.
using Fields = std::vector<std::pair<std::string, std::string>>;

// One "key=value" line for each; line breaks and backslashes of a value are escaped.
std::string EncodeFields(const Fields& fields);

// Nothing where a line has no '=', an escape is none, or the last line has no end: what was sent is
// no message of ours, or not all of it.
std::optional<Fields> DecodeFields(std::string_view bytes);

// The first value of `key`; empty where there is none. Valid until `fields` changes.
std::string_view FirstOf(const Fields& fields, std::string_view key);

// The whole number that `text` is; nothing for any other text.
std::optional<long long> WholeNumber(std::string_view text);

}  // namespace muster::check

#endif  // MUSTER_CHECK_FIELDS_H_
