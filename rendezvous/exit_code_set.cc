#include "rendezvous/exit_code_set.h"

namespace muster {

std::string ExitCodeSet::ToString() const {
  std::string text;
  for (int first = 0; first < kSize; ++first) {
    if (!Contains(first)) continue;
    int last = first;
    while (Contains(last + 1)) ++last;
    if (!text.empty()) text += ",";
    text += std::to_string(first);
    if (last > first) text += "-" + std::to_string(last);
    first = last;
  }
  return text.empty() ? "none" : text;
}

}  // namespace muster
