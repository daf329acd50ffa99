#include "base/nearest_word.h"

#include <algorithm>
#include <cstdlib>

namespace muster {
namespace {

// Damerau's edit distance, where a swap of neighbours counts as one.
int Distance(const std::string& a, const std::string& b) {
  const size_t columns = b.size() + 1;
  std::vector<std::vector<int>> table(a.size() + 1, std::vector<int>(columns));
  for (size_t i = 0; i <= a.size(); ++i) table[i][0] = static_cast<int>(i);
  for (size_t j = 0; j < columns; ++j) table[0][j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j < columns; ++j) {
      int change = table[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      table[i][j] = std::min({change, table[i - 1][j] + 1, table[i][j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        table[i][j] = std::min(table[i][j], table[i - 2][j - 2] + 1);
      }
    }
  }
  return table[a.size()][b.size()];
}

// One may be the beginning of the other, and wrongly typed at that: one letter in four at most, for
// a beginning alone fits many words.
int DistanceOfBeginnings(const std::string& word, const std::string& candidate) {
  constexpr size_t kBeginningMin = 4;
  const size_t shorter = std::min(word.size(), candidate.size());
  const int whole = Distance(word, candidate);
  if (shorter < kBeginningMin) return whole;
  int distance = whole;
  for (size_t size = shorter - 1; size <= shorter + 1; ++size) {
    distance = std::min(distance, Distance(word, candidate.substr(0, size)));
    distance = std::min(distance, Distance(word.substr(0, size), candidate));
  }
  return distance <= static_cast<int>(shorter) / 4 ? distance : whole;
}

}  // namespace

std::string NearestWord(const std::string& word, const std::vector<std::string>& candidates) {
  constexpr size_t kWordMax = 64;  // what is longer is no typing error
  if (word.size() > kWordMax) return "";
  std::string nearest;
  int best = std::max<int>(1, static_cast<int>(word.size() + 1) / 3) + 1;
  for (const std::string& candidate : candidates) {
    int distance = DistanceOfBeginnings(word, candidate);
    if (distance < best) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

}  // namespace muster
