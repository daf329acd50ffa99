#include "agent/failure_probe.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string_view>

#include "agent/kernel_evidence.h"
#include "base/unique_fd.h"

namespace muster {
namespace {

// Of the initial PID namespace: the numbers in the kernel log are those of that one.
constexpr std::string_view kInitialPids = "pid:[4026531836]";
constexpr int kRecordsMax = 100000;

// The beginning of a small file, "" when it cannot be read.
std::string Read(const std::string& path) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) return "";
  char text[4096];
  const ssize_t size = read(file.get(), text, sizeof(text));
  return size > 0 ? std::string(text, static_cast<size_t>(size)) : "";
}

std::string LinkTarget(const std::string& path) {
  char target[PATH_MAX];
  const ssize_t size = readlink(path.c_str(), target, sizeof(target));
  return size > 0 ? std::string(target, static_cast<size_t>(size)) : "";
}

bool IsCrash(int signal) {
  switch (signal) {
    case SIGSEGV:
    case SIGBUS:
    case SIGILL:
    case SIGFPE:
    case SIGABRT:
    case SIGTRAP:
    case SIGSYS:
      return true;
    default:
      return false;
  }
}

void AddLine(const std::string& line, std::string* text) {
  if (line.empty()) return;
  if (!text->empty()) *text += "\n";
  *text += line;
}

}  // namespace

void FailureProbe::Begin() { oom_kills_before_ = CountOomKills(); }

int64_t FailureProbe::CountOomKills() const {
  const CgroupPaths paths = ParseCgroups(Read(paths_.proc + "/self/cgroup"));
  // In a container the path is often that of the host, while its own tree begins at the root.
  const std::string candidates[] = {
      paths_.cgroup + paths.unified + "/memory.events", paths_.cgroup + "/memory.events",
      paths_.cgroup + "/memory" + paths.memory + "/memory.oom_control",
      paths_.cgroup + "/memory/memory.oom_control"};
  for (const std::string& path : candidates) {
    const int64_t kills = OomKills(Read(path));
    if (kills >= 0) return kills;
  }
  return -1;
}

FailureProbe::Finding FailureProbe::Explain(const ExitStatus& status, int pid,
                                            const std::string& program) const {
  if (status.signal() == SIGKILL) return ExplainKill(pid);
  Finding finding;
  if (!IsCrash(status.signal())) return finding;
  AddLine(CoreText(status, pid, program), &finding.text);
  AddLine(KernelLine(pid), &finding.text);
  return finding;
}

// The kernel's log tells of kills for lack of memory only.
FailureProbe::Finding FailureProbe::ExplainKill(int pid) const {
  Finding finding;
  const int64_t kills = CountOomKills();
  const bool is_counted = oom_kills_before_ >= 0 && kills >= 0;
  const std::string line = KernelLine(pid);
  finding.out_of_memory = (is_counted && kills > oom_kills_before_) || !line.empty();
  if (is_counted && kills > oom_kills_before_) {
    finding.text = "out of memory: the kernel killed " + std::to_string(kills - oom_kills_before_) +
                   " of the processes of this cgroup since the workers started";
  } else if (is_counted && line.empty()) {
    finding.text =
        "not sent by the launcher, and not for lack of memory: the kernel counts no such kill in "
        "this cgroup";
  }
  AddLine(line, &finding.text);
  return finding;
}

std::string FailureProbe::CoreText(const ExitStatus& status, int pid,
                                   const std::string& program) const {
  if (!status.core_dumped()) {
    rlimit limit{};
    getrlimit(RLIMIT_CORE, &limit);
    return limit.rlim_cur == 0 ? "no core dump: ulimit -c is 0" : "";
  }
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  const CoreDump dump{pid, status.signal(), program, LinkTarget("/proc/self/cwd"), host};
  const bool uses_pid = Read(paths_.proc + "/sys/kernel/core_uses_pid").substr(0, 1) == "1";
  const std::string place =
      CoreDumpPlace(Read(paths_.proc + "/sys/kernel/core_pattern"), uses_pid, dump);
  return place.empty() ? "" : "core dump: " + place;
}

std::string FailureProbe::KernelLine(int pid) const {
  if (LinkTarget(paths_.proc + "/self/ns/pid") != kInitialPids) return "";
  const UniqueFd log(open(paths_.kernel_log.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!log.valid()) return "";
  std::string found;
  char record[8192];
  for (int i = 0; i < kRecordsMax; ++i) {
    const ssize_t size = read(log.get(), record, sizeof(record));
    // EPIPE: that record was overwritten meanwhile; the next read goes on behind it.
    if (size < 0 && (errno == EPIPE || errno == EINTR)) continue;
    if (size <= 0) break;
    const std::string_view text = KernelRecordText({record, static_cast<size_t>(size)});
    if (TellsOfEnd(text, pid)) found = text;
  }
  return found.empty() ? "" : "kernel: " + found;
}

}  // namespace muster
