#ifndef MUSTER_LAUNCHER_CPU_QUOTA_H_
#define MUSTER_LAUNCHER_CPU_QUOTA_H_

#include <optional>
#include <string>
#include <string_view>

// How much processor time the cgroup of this process may use, in whole CPUs: what containers call
// their CPU limit. Rounded down, because workers that are throttled hold up all others; at least 1.

namespace muster {

// From cpu.max of cgroup v2: "150000 100000" is 1; "max 100000" and what is not understood:
// nothing.
std::optional<int> ParseCpuMax(std::string_view text);

// From cpu.cfs_quota_us and cpu.cfs_period_us of cgroup v1; a quota of -1 is none.
std::optional<int> ParseCfsQuota(std::string_view quota, std::string_view period);

// The folder of this process below the hierarchy with the cpu controller, from the text of
// /proc/self/cgroup: "/user.slice" for version 2 ("0::/user.slice") or 1 ("4:cpu,cpuacct:/..."),
// whichever `v1` asks for. Nothing when there is no such line.
std::optional<std::string> ParseCgroupPath(std::string_view proc_self_cgroup, bool v1);

// The least of the limits of this process's cgroup and those above it; nothing: no limit, or none
// that can be read. `root` is "" for the real machine.
std::optional<int> CpuQuota(const std::string& root);

}  // namespace muster

#endif  // MUSTER_LAUNCHER_CPU_QUOTA_H_
