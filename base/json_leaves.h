#ifndef MUSTER_BASE_JSON_LEAVES_H_
#define MUSTER_BASE_JSON_LEAVES_H_

#include <map>
#include <string>
#include <string_view>

namespace muster {

// The scalars of a JSON text by their path: {"a": {"b": 1, "c": ["x"]}} gives "a.b" -> "1", "a.c.0"
// -> "x".
struct JsonLeaves {
  std::map<std::string, std::string>
      values;  // strings unescaped (UTF-8), numbers and words as written; null is left out
  bool complete = false;  // false: the text ended early or is not JSON; `values` holds what came
                          // before, and the beginning of a string that was cut
};

// Reads what it can and never fails: for files that may be truncated. At most 32 levels deep and
// 1,000 scalars; beyond either the text counts as not JSON. Pure.
JsonLeaves ReadJsonLeaves(std::string_view text);

}  // namespace muster

#endif  // MUSTER_BASE_JSON_LEAVES_H_
