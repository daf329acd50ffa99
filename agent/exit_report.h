#ifndef MUSTER_AGENT_EXIT_REPORT_H_
#define MUSTER_AGENT_EXIT_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/exit_status.h"
#include "base/time.h"

namespace muster {

// A worker that ended badly by itself.
struct FailedWorker {
  std::string node;
  std::string host;
  int rank = 0;
  int local_rank = 0;
  int pid = 0;  // 0: it never started
  ExitStatus status;
  std::string time;     // wall clock of its end, as it shall be shown; may be empty
  int64_t unix_ms = 0;  // the same as a number; 0: not known
  std::string
      message;  // from its error file, its socket, or why it could not be started; may be empty
  std::string stderr_tail;                // last lines, where they are known
  std::string hint;                       // what the kernel says; empty: FailureHint
  std::vector<std::string> threads = {};  // what they did before it was killed; may be empty
  std::string log_path;                   // of its stderr; may be empty
  std::string error_file;                 // may be empty
};

// A worker that the launcher stopped because of a failure elsewhere.
struct StoppedWorker {
  int rank = 0;
  int local_rank = 0;
  int pid = 0;
  ExitStatus status;
  Duration after{};     // from the first signal to its end
  bool killed = false;  // SIGTERM did not do, SIGKILL did
};

// Why a job ended badly, as one node knows it.
struct ExitReport {
  std::string program;  // of the workers
  std::string job_id;
  int64_t generation = 0;
  int restarts_used = 0;
  int restarts_max = 0;
  int exit_code = 0;         // of the launcher
  std::string verdict = {};  // the job's, where it says more than the rest; may be empty

  std::vector<FailedWorker>
      failures;  // of this node, in the order they were seen: the first is the root cause here
  std::vector<StoppedWorker> stopped;

  // The job's root cause where it lies on another node: in full as that node has told it, else in a
  // sentence (Verdict). Both empty where it is failures[0].
  std::optional<FailedWorker> cause;
  std::string cause_elsewhere;
  std::string failed_node;
  int failed_rank = -1;

  std::string log_root;        // directory of the run's logs; may be empty
  int64_t log_bytes_lost = 0;  // that log files did not take, in the whole run
};

// The block for stderr at the end of a failed job: root cause, other failures, stopped workers,
// with a final line break. No control bytes from outside are left in it. Lines have at most 100
// columns: longer messages of the root cause are wrapped, lines of stderr and other failures cut
// with '…'; only paths stay in one piece. At most 30 lines of stderr and 60 of threads, 12 of the
// message, 16 workers of each list. Pure.
std::string ExitReportText(const ExitReport& report);

// The short form for each restart, without a line break, at most 240 columns:
// "rank 2 (local rank 0, pid 812, node gpu7) failed: signal 9 (SIGKILL): message".
std::string FailureLine(const FailedWorker& failure);

// What commonly lies behind such an end ("often the kernel's out-of-memory killer …"), or "".
std::string FailureHint(const ExitStatus& status);

}  // namespace muster

#endif  // MUSTER_AGENT_EXIT_REPORT_H_
