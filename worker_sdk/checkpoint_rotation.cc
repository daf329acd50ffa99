#include "worker_sdk/checkpoint_rotation.h"

#include <errno.h>
#include <muster/error.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace muster {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrevious = ".previous";
constexpr std::string_view kTemporary = ".tmp.";

template <class T>
std::optional<T> Number(std::string_view text) {
  T number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// ".previous" -> 1, ".previous.3" -> 3; 0: it is no previous file.
int AgeOf(std::string_view suffix) {
  if (!suffix.starts_with(kPrevious)) return 0;
  suffix.remove_prefix(kPrevious.size());
  if (suffix.empty()) return 1;
  if (!suffix.starts_with('.')) return 0;
  const int age = Number<int>(suffix.substr(1)).value_or(0);
  return age >= 2 ? age : 0;
}

// What follows PATH in the names of its folder.
std::vector<std::string> SuffixesBeside(const fs::path& path) {
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const std::string own = path.filename().string();
  std::vector<std::string> suffixes;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.size() > own.size() && name.starts_with(own))
      suffixes.push_back(name.substr(own.size()));
  }
  return suffixes;
}

std::vector<int> Ages(const fs::path& path) {
  std::vector<int> ages;
  for (const std::string& suffix : SuffixesBeside(path)) {
    if (const int age = AgeOf(suffix); age > 0) ages.push_back(age);
  }
  std::sort(ages.begin(), ages.end());
  return ages;
}

bool LeftByThePast(std::string_view suffix, uint64_t instance, int64_t generation) {
  if (!suffix.starts_with(kTemporary)) return false;
  suffix.remove_prefix(kTemporary.size());
  const size_t dot = suffix.find('.');
  if (dot == std::string_view::npos) return false;
  const auto its_instance = Number<uint64_t>(suffix.substr(0, dot));
  const auto its_generation = Number<int64_t>(suffix.substr(dot + 1));
  if (!its_instance || !its_generation) return false;
  return *its_instance < instance || (*its_instance == instance && *its_generation < generation);
}

}  // namespace

fs::path PreviousName(const fs::path& path, int age) {
  return path.string() + std::string(kPrevious) + (age == 1 ? "" : "." + std::to_string(age));
}

fs::path TemporaryName(const fs::path& path, uint64_t instance, int64_t generation) {
  return path.string() + std::string(kTemporary) + std::to_string(instance) + "." +
         std::to_string(generation);
}

std::vector<fs::path> PreviousFiles(const fs::path& path) {
  std::vector<fs::path> files;
  for (const int age : Ages(path)) files.push_back(PreviousName(path, age));
  return files;
}

void ShiftPrevious(const fs::path& path, int keep) {
  const std::vector<int> ages = Ages(path);
  // Up to the first gap: what is beyond needs not move.
  int last = 0;
  while (static_cast<size_t>(last) < ages.size() && ages[static_cast<size_t>(last)] == last + 1)
    ++last;
  for (int age = std::min(last, keep - 2); age >= 1; --age) {
    const fs::path from = PreviousName(path, age);
    if (rename(from.c_str(), PreviousName(path, age + 1).c_str()) == 0) continue;
    throw CheckpointError("cannot rename checkpoint " + from.string() + ": " +
                          std::generic_category().message(errno));
  }
}

void RemoveSurplus(const fs::path& path, int keep, uint64_t instance, int64_t generation) {
  for (const std::string& suffix : SuffixesBeside(path)) {
    if (AgeOf(suffix) >= keep || LeftByThePast(suffix, instance, generation)) {
      unlink((path.string() + suffix).c_str());
    }
  }
}

}  // namespace muster
