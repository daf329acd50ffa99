#include "agent/node_report.h"

#include <signal.h>
#include <unistd.h>

#include <ctime>

#include "absl/strings/str_cat.h"
#include "agent/error_file.h"
#include "base/log.h"

namespace muster {
namespace {

constexpr int kTailLines = 30;

std::string WallClockText() {
  char text[64];
  const time_t now = time(nullptr);
  tm local{};
  localtime_r(&now, &local);
  return std::string(text, strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &local));
}

std::string Existing(const std::string& path) {
  return access(path.c_str(), F_OK) == 0 ? path : "";
}

}  // namespace

NodeReport::NodeReport(const AgentOptions& options, GenerationShell& generation)
    : options_(options), generation_(generation) {
  char name[256] = "";
  gethostname(name, sizeof(name) - 1);
  host_name_ = name;
}

void NodeReport::Closing(const Outcome& outcome) {
  report_ = ExitReport();
  report_.program = options_.argv[0];
  report_.job_id = options_.job_id;
  report_.generation = outcome.assignment.generation;
  report_.restarts_used = outcome.assignment.restart_count;
  report_.restarts_max = options_.settings.max_restarts;
  report_.log_root = generation_.log_root();
  if (!outcome.failure) return;
  Time stop_began{};
  for (const Worker& worker : outcome.workers) {
    if (!worker.status.ok() && !worker.stopped_by_us)
      stop_began = std::max(stop_began, worker.ended_at);
  }
  for (size_t i = 0; i < outcome.workers.size(); ++i) {
    const Worker& worker = outcome.workers[i];
    const int local_rank = static_cast<int>(i);
    const int rank = outcome.assignment.rank_base + local_rank;
    if (worker.stopped_by_us) {
      const bool killed = worker.status.signal() == SIGKILL;
      report_.stopped.push_back(
          {rank, local_rank, worker.pid, worker.status, worker.ended_at - stop_began, killed});
    } else if (!worker.status.ok()) {
      FailedWorker failed;
      failed.node = options_.node_id;
      failed.host = host_name_;
      failed.rank = rank;
      failed.local_rank = local_rank;
      failed.pid = worker.pid;
      failed.status = worker.status;
      failed.time = WallClockText();
      const WorkerError error = ReadErrorFile(generation_.ErrorFile(local_rank));
      failed.message = error.message.empty() ? worker.problem : error.message;
      failed.stderr_tail = generation_.StderrTail(local_rank, kTailLines);
      failed.threads = generation_.Threads(local_rank);
      failed.is_stalled = worker.stalled;
      failed.log_path = generation_.LogPath(local_rank);
      failed.error_file = Existing(generation_.ErrorFile(local_rank));
      report_.failures.push_back(std::move(failed));
    }
  }
}

void NodeReport::Starting(const Assignment& assignment) {
  if (report_.failures.empty()) return;
  Log(LogLevel::kWarning,
      absl::StrCat(FailureLine(report_.failures.front()), "; restart ", assignment.restart_count,
                   " of ", options_.settings.max_restarts));
}

void NodeReport::Print(const Outcome& outcome, int exit_code) const {
  if (exit_code == 0 || outcome.leaving_signal != 0) return;
  if (outcome.verdict && outcome.verdict->failed_rank < 0) {
    Log(LogLevel::kError, outcome.verdict->cause);
    return;
  }
  ExitReport report = report_;
  report.exit_code = exit_code;
  // Why restarts were left over.
  const bool is_early = report.restarts_used < report.restarts_max;
  if (outcome.verdict && is_early) report.verdict = outcome.verdict->cause;
  if (outcome.verdict && outcome.verdict->failed_node != options_.node_id) {
    report.cause_elsewhere = outcome.verdict->cause;
    report.failed_node = outcome.verdict->failed_node;
    report.failed_rank = outcome.verdict->failed_rank;
  }
  if (report.failures.empty() && report.cause_elsewhere.empty()) return;
  const std::string text = ExitReportText(report);
  // A terminal that takes nothing must not keep the launcher: what it does not take is lost.
  if (write(STDERR_FILENO, text.data(), text.size()) < 0) return;
}

}  // namespace muster
