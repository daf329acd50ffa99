#ifndef MUSTER_AGENT_KERNEL_EVIDENCE_H_
#define MUSTER_AGENT_KERNEL_EVIDENCE_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace muster {

// What the kernel's files say of a process that died. All pure; agent/failure_probe.h reads them.

// A process that dumped core.
struct CoreDump {
  int pid = 0;
  int signal = 0;
  std::string program;  // its path
  std::string cwd;      // where it ran
  std::string host;
};

// Where its core is, by the text of /proc/sys/kernel/core_pattern: a path, with '*' for what only
// the kernel knows, or the program that the kernel piped it to. `uses_pid`: core_uses_pid is 1.
// Empty: the pattern is empty.
std::string CoreDumpPlace(std::string_view core_pattern, bool uses_pid, const CoreDump& dump);

// The number of processes that were killed for lack of memory, from memory.events (cgroup v2) or
// memory.oom_control (v1). -1: it is not in `text`.
int64_t OomKills(std::string_view text);

// Where a process is in the cgroup trees, from /proc/PID/cgroup. Paths begin with '/'; empty: it is
// not in such a tree.
struct CgroupPaths {
  std::string unified;  // v2
  std::string memory;   // v1
  bool operator==(const CgroupPaths&) const = default;
};
CgroupPaths ParseCgroups(std::string_view text);

// The text of one record of /dev/kmsg ("6,339,5140900,-;text" and further lines); empty where it is
// none.
std::string_view KernelRecordText(std::string_view record);

// Such a text tells of the end of this process: killed for lack of memory, or a fault.
bool TellsOfEnd(std::string_view record_text, int pid);

}  // namespace muster

#endif  // MUSTER_AGENT_KERNEL_EVIDENCE_H_
