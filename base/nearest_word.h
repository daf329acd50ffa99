#ifndef MUSTER_BASE_NEAREST_WORD_H_
#define MUSTER_BASE_NEAREST_WORD_H_

#include <string>
#include <vector>

namespace muster {

// The candidate that `word` was most likely meant to be: the fewest letters wrong, missing, too
// many or swapped, and at most a third of them; the first of several. Empty when none is near.
std::string NearestWord(const std::string& word, const std::vector<std::string>& candidates);

}  // namespace muster

#endif  // MUSTER_BASE_NEAREST_WORD_H_
