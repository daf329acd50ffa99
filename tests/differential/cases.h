#ifndef MUSTER_TESTS_DIFFERENTIAL_CASES_H_
#define MUSTER_TESTS_DIFFERENTIAL_CASES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace muster {

// A line of cases.txt.
struct Case {
  std::string name;
  std::map<std::string, std::string> settings;

  std::string Get(const std::string& key, const std::string& otherwise = "") const;
  bool On(const std::string& key) const { return Get(key) == "1"; }
  int64_t Ulps() const;  // 0: equal bit for bit
};

std::vector<Case> ReadCases(const std::string& file);

// Tensors by "case ranks name", as both sides write them.
using Results = std::map<std::string, std::vector<float>>;
Results ParseResults(const std::string& text);

// The largest distance, in units in the last place of the largest number of `expected`; -1: of
// other sizes, or a NaN on one side only.
double UlpsApart(const std::vector<float>& actual, const std::vector<float>& expected);

}  // namespace muster

#endif  // MUSTER_TESTS_DIFFERENTIAL_CASES_H_
