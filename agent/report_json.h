#ifndef MUSTER_AGENT_REPORT_JSON_H_
#define MUSTER_AGENT_REPORT_JSON_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/exit_report.h"
#include "base/exit_status.h"

namespace muster {

// A worker of the last generation, as --report-file lists it.
struct ReportedWorker {
  int rank = 0;
  int local_rank = 0;
  int pid = 0;
  ExitStatus status;
  bool stopped_by_us = false;
  int64_t uptime_ms = 0;
};

// A generation that did not end well on this node.
struct ReportedIncident {
  int64_t generation = 0;
  int restart_count = 0;  // of the job when the generation began
  int64_t began_ms = 0;   // Unix time, as all *_ms but uptime
  int64_t ended_ms = 0;
  std::optional<FailedWorker>
      failure;  // of this node; none: another node's, or a change of members
};

// The end of a run as one node knows it. Schema: docs/REPORT.md.
struct JobReport {
  ExitReport exit;
  std::string node;
  std::string host;
  std::string reason;                 // the verdict's sentence; empty after success
  std::optional<FailedWorker> cause;  // the job's root cause, wherever it lies
  int leaving_signal = 0;             // that told the launcher to stop; 0: none
  int64_t began_ms = 0;
  int64_t ended_ms = 0;
  std::vector<ReportedWorker> workers;
  std::vector<ReportedIncident> incidents;  // the latest; older ones are counted only
  int64_t incidents_left_out = 0;
};

// The text of --report-file, with a final line break. Pure.
std::string JobReportJson(const JobReport& report);

// The root cause in the form of torchrun's TORCHELASTIC_ERROR_FILE, for whoever started the
// launcher. An empty `traceback`: its last lines take that place, else its message. Pure.
std::string ErrorFileJson(const FailedWorker& cause, const std::string& traceback, int exit_code);

// At most `bytes_max` bytes for Kubernetes' termination message: the root cause, then as many of
// its last lines as fit. Pure.
std::string TerminationText(const JobReport& report, size_t bytes_max);

}  // namespace muster

#endif  // MUSTER_AGENT_REPORT_JSON_H_
