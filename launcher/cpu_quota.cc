#include "launcher/cpu_quota.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <limits>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace muster {
namespace {

std::string Content(const std::string& path) {
  std::ifstream file(path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::optional<int64_t> Number(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  int64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

void TakeLower(std::optional<int> limit, std::optional<int>* least) {
  if (limit.has_value()) least->emplace(std::min(*limit, least->value_or(*limit)));
}

// The limits of `path` and of the folders above it, read by `read(folder)`.
template <typename Read>
std::optional<int> LeastLimit(const std::string& mount, std::string path, const Read& read) {
  std::optional<int> least;
  while (true) {
    TakeLower(read(mount + path), &least);
    const size_t slash = path.rfind('/');
    if (slash == path.npos) return least;
    path.resize(slash);
  }
}

}  // namespace

std::optional<int> ParseCfsQuota(std::string_view quota, std::string_view period) {
  const std::optional<int64_t> micros = Number({quota.data(), quota.size()});
  const std::optional<int64_t> each = Number({period.data(), period.size()});
  if (!micros || !each || *micros <= 0 || *each <= 0) return std::nullopt;
  return static_cast<int>(std::clamp<int64_t>(*micros / *each, 1, std::numeric_limits<int>::max()));
}

std::optional<int> ParseCpuMax(std::string_view text) {
  const size_t blank = text.find(' ');
  if (blank == text.npos) return std::nullopt;
  return ParseCfsQuota(text.substr(0, blank), text.substr(blank + 1));
}

std::optional<std::string> ParseCgroupPath(std::string_view proc_self_cgroup, bool v1) {
  const absl::string_view text(proc_self_cgroup.data(), proc_self_cgroup.size());
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<absl::string_view> fields = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3 || !absl::StartsWith(fields[2], "/")) continue;
    const std::vector<absl::string_view> controllers = absl::StrSplit(fields[1], ',');
    const bool has_cpu =
        std::find(controllers.begin(), controllers.end(), "cpu") != controllers.end();
    if (v1 ? !has_cpu : fields[0] != "0" || !fields[1].empty()) continue;
    return fields[2] == "/" ? "" : std::string(fields[2]);
  }
  return std::nullopt;
}

std::optional<int> CpuQuota(const std::string& root) {
  const std::string own = Content(root + "/proc/self/cgroup");
  const std::string mount = root + "/sys/fs/cgroup";
  std::optional<int> least;
  if (std::optional<std::string> path = ParseCgroupPath(own, false)) {
    TakeLower(LeastLimit(mount, *path,
                         [](const std::string& folder) {
                           return ParseCpuMax(Content(folder + "/cpu.max"));
                         }),
              &least);
  }
  if (std::optional<std::string> path = ParseCgroupPath(own, true)) {
    TakeLower(LeastLimit(mount + "/cpu", *path,
                         [](const std::string& folder) {
                           return ParseCfsQuota(Content(folder + "/cpu.cfs_quota_us"),
                                                Content(folder + "/cpu.cfs_period_us"));
                         }),
              &least);
  }
  return least;
}

}  // namespace muster
