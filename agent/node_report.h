#ifndef MUSTER_AGENT_NODE_REPORT_H_
#define MUSTER_AGENT_NODE_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "agent/agent_options.h"
#include "agent/exit_report.h"
#include "agent/generation_shell.h"
#include "agent/report_json.h"
#include "agent/supervisor_machine.h"

namespace muster {

// What a run tells of itself (docs/REPORT.md): one line at each restart, at the end the block on
// stderr and the files that were asked for. Collects what only the shell knows: wall-clock times,
// last lines, paths. Loop thread only.
class NodeReport {
 public:
  NodeReport(const AgentOptions& options, GenerationShell& generation);

  // Before anything is started: that --report-file can be written. PermissionDenied, in one line.
  absl::Status Prepare() const;

  // The workers of a generation have ended; their logs can still be read.
  void Closing(const Outcome& outcome);
  // The next generation begins.
  void Starting(const Assignment& assignment);
  // The end: the block on stderr (nothing after success, a stop that was asked for by a signal, or
  // one of the told exit codes),
  // --report-file, and after a failure the launcher's own TORCHELASTIC_ERROR_FILE and the
  // termination log. What cannot be written is warned of.
  void Finish(const Outcome& outcome, int exit_code);

 private:
  void AddWorkers(const Outcome& outcome);
  FailedWorker LocalFailure(const Outcome& outcome, int local_rank) const;
  std::optional<FailedWorker> RootCause(const Outcome& outcome) const;
  void Print(const Outcome& outcome) const;
  std::string CauseOf(const Verdict& verdict) const;
  void WriteFiles() const;

  const AgentOptions& options_;
  GenerationShell& generation_;
  std::string host_name_;
  int64_t generation_began_ms_ = 0;
  JobReport report_;  // `exit` and `workers` are of the last generation that ended
};

}  // namespace muster

#endif  // MUSTER_AGENT_NODE_REPORT_H_
