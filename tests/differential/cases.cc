#include "tests/differential/cases.h"

#include <bit>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <sstream>

namespace muster {

std::string Case::Get(const std::string& key, const std::string& otherwise) const {
  const auto found = settings.find(key);
  return found == settings.end() ? otherwise : found->second;
}

int64_t Case::Ulps() const { return std::atol(Get("ulps", "0").c_str()); }

std::vector<Case> ReadCases(const std::string& file) {
  std::ifstream lines(file);
  std::vector<Case> cases;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    Case one;
    if (line.starts_with('#') || !(words >> one.name)) continue;
    for (std::string setting; words >> setting;) {
      const size_t equals = setting.find('=');
      one.settings[setting.substr(0, equals)] = setting.substr(equals + 1);
    }
    cases.push_back(one);
  }
  return cases;
}

Results ParseResults(const std::string& text) {
  Results results;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream words(line);
    std::string name, ranks, tensor;
    words >> name >> ranks >> tensor;
    auto& numbers = results[name + " " + ranks + " " + tensor];
    for (std::string bits; words >> bits;) {
      numbers.push_back(
          std::bit_cast<float>(static_cast<uint32_t>(std::strtoul(bits.c_str(), nullptr, 16))));
    }
  }
  return results;
}

double UlpsApart(const std::vector<float>& actual, const std::vector<float>& expected) {
  if (actual.size() != expected.size()) return -1;
  float largest = 0, apart = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    if (std::isnan(actual[i]) != std::isnan(expected[i])) return -1;
    if (std::bit_cast<uint32_t>(actual[i]) == std::bit_cast<uint32_t>(expected[i])) continue;
    if (std::isfinite(expected[i])) largest = std::max(largest, std::abs(expected[i]));
    apart = std::max(apart, std::abs(actual[i] - expected[i]));
  }
  if (apart == 0) return 0;
  for (const float number : expected) {
    if (std::isfinite(number)) largest = std::max(largest, std::abs(number));
  }
  const float ulp = std::nextafter(largest, std::numeric_limits<float>::infinity()) - largest;
  return apart / ulp;
}

}  // namespace muster
