#ifndef MUSTER_AGENT_FAILURE_PROBE_H_
#define MUSTER_AGENT_FAILURE_PROBE_H_

#include <cstdint>
#include <string>

#include "base/exit_status.h"

namespace muster {

// Asks the kernel what lies behind the end of a worker: killed for lack of memory, where its core
// dump is, what the kernel log says of it. Every file may be missing or unreadable; then less is
// known. Not thread-safe.
class FailureProbe {
 public:
  struct Paths {
    std::string proc = "/proc";
    std::string cgroup = "/sys/fs/cgroup";
    std::string kernel_log = "/dev/kmsg";
  };

  FailureProbe() : FailureProbe(Paths()) {}
  explicit FailureProbe(Paths paths) : paths_(std::move(paths)) {}

  // The workers are about to start: remembers how many processes of this cgroup were killed for
  // lack of memory so far. Two small reads.
  void Begin();

  struct Finding {
    std::string text;  // for the report, one sentence a line; "": the kernel knows nothing
    bool out_of_memory = false;  // a kill for lack of memory
  };

  // `status` is of a worker that nobody here has signalled. Reads the kernel log only for the
  // signals that it tells of.
  Finding Explain(const ExitStatus& status, int pid, const std::string& program) const;

 private:
  int64_t CountOomKills() const;
  Finding ExplainKill(int pid) const;
  std::string CoreText(const ExitStatus& status, int pid, const std::string& program) const;
  std::string KernelLine(int pid) const;

  Paths paths_;
  int64_t oom_kills_before_ = -1;  // -1: not known
};

}  // namespace muster

#endif  // MUSTER_AGENT_FAILURE_PROBE_H_
