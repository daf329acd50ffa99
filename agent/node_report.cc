#include "agent/node_report.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "agent/error_file.h"
#include "base/atomic_file.h"
#include "base/log.h"
#include "base/unique_fd.h"
#include "rendezvous/reason.h"

namespace muster {
namespace {

constexpr size_t kIncidentsKept = 100;
constexpr size_t kTerminationBytesMax = 4096;  // Kubernetes reads no more

int64_t UnixMs() {
  return std::chrono::system_clock::now().time_since_epoch() / std::chrono::milliseconds(1);
}

std::string WallClockText(int64_t unix_ms) {
  if (unix_ms <= 0) return "";
  char text[64];
  const time_t seconds = unix_ms / 1000;
  tm local{};
  localtime_r(&seconds, &local);
  return std::string(text, strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &local));
}

std::string Existing(const std::string& path) {
  return access(path.c_str(), F_OK) == 0 ? path : "";
}

FailedWorker Told(const WorkerFailed& failure, const std::string& node) {
  FailedWorker told;
  told.node = node;
  told.host = failure.evidence.host;
  told.rank = failure.rank;
  told.local_rank = failure.local_rank;
  told.pid = failure.pid;
  told.status = failure.status;
  told.unix_ms = failure.evidence.unix_ms;
  told.time = WallClockText(told.unix_ms);
  told.message = failure.evidence.message.empty() ? failure.message : failure.evidence.message;
  told.hint = failure.evidence.hint;
  told.stderr_tail = failure.evidence.stderr_tail;
  told.log_path = failure.evidence.log_path;
  return told;
}

// Written in place: the file is a mount of the kubelet's.
void WriteTerminationLog(const std::string& path, const std::string& text) {
  const UniqueFd file(open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC | O_NONBLOCK));
  if (file.valid() && write(file.get(), text.data(), text.size()) >= 0) return;
  Log(LogLevel::kWarning, absl::StrCat("cannot write ", path, ": ", strerror(errno)));
}

void Replace(const std::string& path, const std::string& text) {
  const absl::Status status = ReplaceFile(path, text);
  if (!status.ok()) Log(LogLevel::kWarning, std::string(status.message()));
}

}  // namespace

NodeReport::NodeReport(const AgentOptions& options, GenerationShell& generation)
    : options_(options), generation_(generation) {
  char name[256] = "";
  gethostname(name, sizeof(name) - 1);
  host_name_ = name;
  report_.node = options_.node_id;
  report_.host = host_name_;
  report_.began_ms = UnixMs();
}

absl::Status NodeReport::Prepare() const {
  if (options_.report_file.empty()) return absl::OkStatus();
  const absl::Status status = CheckReplaceable(options_.report_file);
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat("the report file ", status.message(),
                                                  ": choose a file that can be written"));
}

FailedWorker NodeReport::LocalFailure(const Outcome& outcome, int local_rank) const {
  const Worker& worker = outcome.workers[local_rank];
  WorkerFailed told;
  if (outcome.failure && outcome.failure->local_rank == local_rank) told = *outcome.failure;
  told.local_rank = local_rank;
  told.rank = outcome.assignment.rank_base + local_rank;
  told.pid = worker.pid;
  told.status = worker.status;
  if (told.message.empty()) told.message = worker.problem;
  told.evidence.host = host_name_;
  if (told.evidence.unix_ms == 0) told.evidence.unix_ms = UnixMs();
  FailedWorker failed = Told(told, options_.node_id);
  failed.threads = generation_.Threads(local_rank);
  failed.log_path = Existing(generation_.LogPath(local_rank));
  failed.error_file = Existing(generation_.ErrorFile(local_rank));
  return failed;
}

void NodeReport::AddWorkers(const Outcome& outcome) {
  Time stop_began{};
  for (const Worker& worker : outcome.workers) {
    if (!worker.status.ok() && !worker.stopped_by_us)
      stop_began = std::max(stop_began, worker.ended_at);
  }
  for (size_t i = 0; i < outcome.workers.size(); ++i) {
    const Worker& worker = outcome.workers[i];
    const int local_rank = static_cast<int>(i);
    const int rank = outcome.assignment.rank_base + local_rank;
    report_.workers.push_back(
        {rank, local_rank, worker.pid, worker.status, worker.stopped_by_us,
         (worker.ended_at - worker.started_at) / std::chrono::milliseconds(1)});
    if (!outcome.failure) continue;
    if (worker.stopped_by_us) {
      const bool killed = worker.status.signal() == SIGKILL;
      report_.exit.stopped.push_back(
          {rank, local_rank, worker.pid, worker.status, worker.ended_at - stop_began, killed});
    } else if (!worker.status.ok()) {
      report_.exit.failures.push_back(LocalFailure(outcome, local_rank));
    }
  }
}

void NodeReport::Closing(const Outcome& outcome) {
  ExitReport& exit = report_.exit;
  exit = ExitReport();
  exit.program = options_.program;
  exit.job_id = options_.job_id;
  exit.generation = outcome.assignment.generation;
  exit.restarts_used = outcome.assignment.restart_count;
  exit.restarts_max = options_.settings.max_restarts;
  exit.log_root = generation_.log_root();
  report_.workers.clear();
  AddWorkers(outcome);
  const bool all_good = std::all_of(outcome.workers.begin(), outcome.workers.end(),
                                    [](const Worker& worker) { return worker.status.ok(); });
  if (all_good) return;
  if (report_.incidents.size() == kIncidentsKept) {
    report_.incidents.erase(report_.incidents.begin());
    ++report_.incidents_left_out;
  }
  ReportedIncident incident{
      exit.generation, exit.restarts_used, generation_began_ms_, UnixMs(), {}};
  if (!exit.failures.empty()) incident.failure = exit.failures.front();
  report_.incidents.push_back(std::move(incident));
}

void NodeReport::Starting(const Assignment& assignment) {
  generation_began_ms_ = UnixMs();
  if (report_.exit.failures.empty()) return;
  Log(LogLevel::kWarning,
      absl::StrCat(FailureLine(report_.exit.failures.front()), "; restart ",
                   assignment.restart_count, " of ", options_.settings.max_restarts));
}

std::optional<FailedWorker> NodeReport::RootCause(const Outcome& outcome) const {
  const std::vector<FailedWorker>& here = report_.exit.failures;
  if (outcome.verdict && outcome.verdict->failed_rank >= 0) {
    const Verdict& verdict = *outcome.verdict;
    const auto same = std::find_if(here.begin(), here.end(), [&verdict](const FailedWorker& f) {
      return f.node == verdict.failed_node && f.rank == verdict.failed_rank;
    });
    if (same != here.end()) return *same;
    if (verdict.failure) return Told(*verdict.failure, verdict.failed_node);
    return std::nullopt;
  }
  return here.empty() || outcome.verdict ? std::nullopt : std::make_optional(here.front());
}

void NodeReport::Finish(const Outcome& outcome, int exit_code) {
  ExitReport& exit = report_.exit;
  exit.exit_code = exit_code;
  exit.program = options_.program;
  exit.job_id = options_.job_id;
  exit.restarts_max = options_.settings.max_restarts;
  exit.log_bytes_lost = generation_.log_bytes_lost();
  report_.leaving_signal = outcome.leaving_signal;
  report_.ended_ms = UnixMs();
  if (exit_code != 0) {
    if (outcome.verdict) report_.reason = CauseOf(*outcome.verdict);
    report_.cause = RootCause(outcome);
  }
  const bool wanted = exit_code != 0 && outcome.leaving_signal == 0 &&
                      !options_.told_exit_codes.Contains(exit_code);
  if (wanted) Print(outcome);
  WriteFiles();
}

void NodeReport::Print(const Outcome& outcome) const {
  if (outcome.verdict && outcome.verdict->failed_rank < 0) {
    Log(LogLevel::kError, CauseOf(*outcome.verdict));
    return;
  }
  ExitReport report = report_.exit;
  // Why restarts were left over.
  const bool is_early = report.restarts_used < report.restarts_max;
  if (outcome.verdict && is_early) report.verdict = outcome.verdict->cause;
  if (report_.cause) {
    report.cause = report_.cause;
    // It comes first; what follows are the others.
    report.failures.erase(std::remove_if(report.failures.begin(), report.failures.end(),
                                         [this](const FailedWorker& f) {
                                           return f.rank == report_.cause->rank &&
                                                  f.node == report_.cause->node;
                                         }),
                          report.failures.end());
  } else if (outcome.verdict && outcome.verdict->failed_node != options_.node_id) {
    report.cause_elsewhere = outcome.verdict->cause;
    report.failed_node = outcome.verdict->failed_node;
    report.failed_rank = outcome.verdict->failed_rank;
  }
  if (!report.cause && report.failures.empty() && report.cause_elsewhere.empty()) return;
  if (report.cause && report.cause->pid == 0) {
    // There is nothing to look into: no process was there.
    Log(LogLevel::kError, FailureLine(*report.cause));
    return;
  }
  const std::string text = ExitReportText(report);
  // A terminal that takes nothing must not keep the launcher: what it does not take is lost.
  if (write(STDERR_FILENO, text.data(), text.size()) < 0) return;
}

// The master knows `muster run` alone.
std::string NodeReport::CauseOf(const Verdict& verdict) const {
  if (options_.join_timeout_option.empty()) return verdict.cause;
  return absl::StrReplaceAll(verdict.cause, {{kJoinTimeoutOption, options_.join_timeout_option}});
}

void NodeReport::WriteFiles() const {
  if (!options_.report_file.empty()) Replace(options_.report_file, JobReportJson(report_));
  if (report_.exit.exit_code == 0) return;
  if (!options_.error_file.empty() && report_.cause) {
    const std::string traceback = ReadErrorFile(report_.cause->error_file).traceback;
    Replace(options_.error_file, ErrorFileJson(*report_.cause, traceback, report_.exit.exit_code));
  }
  if (!Existing(options_.termination_log).empty()) {
    WriteTerminationLog(options_.termination_log, TerminationText(report_, kTerminationBytesMax));
  }
}

}  // namespace muster
