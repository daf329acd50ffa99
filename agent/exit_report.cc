#include "agent/exit_report.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <string_view>

#include "agent/report_text.h"

namespace muster {
namespace {

constexpr int kColumns = 100;
constexpr int kLabelColumns = 14;  // two blanks, a label, blanks
constexpr size_t kStderrLinesMax = 30;
constexpr size_t kThreadLinesMax = 60;
constexpr size_t kMessageLinesMax = 12;
constexpr size_t kListedMax = 16;
constexpr int kFailureLineColumns = 240;

// The report as it grows.
class Box {
 public:
  void Line(const std::string& line) { text += line + "\n"; }

  void Wrapped(std::string_view text) {
    for (const std::string& piece : WrapToColumns(CleanLine(text), kColumns)) Line(piece);
  }

  // "  label       text", continued below its text.
  void Field(std::string_view label, std::string_view text) {
    std::string begin = "  " + std::string(label);
    begin.resize(kLabelColumns, ' ');
    for (const std::string& piece : WrapToColumns(CleanLine(text), kColumns - kLabelColumns)) {
      Line(begin + piece);
      begin.assign(kLabelColumns, ' ');
    }
  }

  // The same for what must stay in one piece.
  void Path(std::string_view label, std::string_view path) {
    if (path.empty()) return;
    std::string begin = "  " + std::string(label);
    begin.resize(kLabelColumns, ' ');
    Line(begin + CleanLine(path));
  }

  void Border() { Line(std::string(kColumns, '=')); }

  std::string text;
};

std::string Who(int rank, int local_rank, int pid) {
  return "rank " + std::to_string(rank) + " (local rank " + std::to_string(local_rank) +
         (pid > 0 ? ", pid " + std::to_string(pid) : std::string(", never started")) + ")";
}

std::string Seconds(Duration duration) {
  const auto tenths = (duration + std::chrono::milliseconds(50)) / std::chrono::milliseconds(100);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
}

void AddMessage(const std::string& message, Box& box) {
  std::vector<std::string> lines = CleanLines(message);
  const size_t left_out = lines.size() > kMessageLinesMax ? lines.size() - kMessageLinesMax : 0;
  lines.resize(lines.size() - left_out);
  std::string_view label = "message";
  for (const std::string& line : lines) {
    box.Field(label, line);
    label = "";
  }
  if (left_out > 0) box.Field("", "(" + std::to_string(left_out) + " more lines)");
}

void AddStderr(const std::string& tail, Box& box) {
  const std::vector<std::string> lines = CleanLines(tail);
  if (lines.empty()) return;
  box.Line("  last lines of its stderr:");
  const size_t first = lines.size() > kStderrLinesMax ? lines.size() - kStderrLinesMax : 0;
  for (size_t i = first; i < lines.size(); ++i) {
    box.Line(CutToColumns("    | " + lines[i], kColumns));
  }
}

void AddThreads(const std::vector<std::string>& threads, Box& box) {
  if (threads.empty()) return;
  box.Line("  its threads, before it was killed:");
  for (size_t i = 0; i < std::min(threads.size(), kThreadLinesMax); ++i) {
    box.Line(CutToColumns("    | " + CleanLine(threads[i]), kColumns));
  }
}

void AddRootCause(const FailedWorker& failure, Box& box) {
  box.Wrapped("Root cause: " + Who(failure.rank, failure.local_rank, failure.pid) + ": " +
              failure.status.ToString());
  const bool one_name = failure.host.empty() || failure.host == failure.node;
  const std::string host = one_name ? "" : " (host " + failure.host + ")";
  if (!failure.node.empty()) box.Field("node", failure.node + host);
  if (!failure.time.empty()) box.Field("time", failure.time);
  AddMessage(failure.message, box);
  std::string_view label = "hint";
  const std::string hint = failure.hint.empty() ? FailureHint(failure.status) : failure.hint;
  for (const std::string& line : CleanLines(hint)) {
    box.Field(label, line);
    label = "";
  }
  AddThreads(failure.threads, box);
  AddStderr(failure.stderr_tail, box);
  box.Path("log", failure.log_path);
  box.Path("error file", failure.error_file);
}

void AddLeftOut(size_t count, Box& box) {
  if (count > kListedMax) box.Line("  and " + std::to_string(count - kListedMax) + " more");
}

void AddFailures(const std::vector<FailedWorker>& failures, size_t first, const char* title,
                 Box& box) {
  if (failures.size() <= first) return;
  box.Line("");
  box.Line(title);
  const size_t count = failures.size() - first;
  for (size_t i = first; i < first + std::min(count, kListedMax); ++i) {
    box.Line(CutToColumns("  " + FailureLine(failures[i]), kColumns));
    box.Path("  log", failures[i].log_path);
  }
  AddLeftOut(count, box);
}

void AddStopped(const std::vector<StoppedWorker>& stopped, Box& box) {
  if (stopped.empty()) return;
  box.Line("");
  box.Line("Stopped by the launcher:");
  for (size_t i = 0; i < std::min(stopped.size(), kListedMax); ++i) {
    const StoppedWorker& worker = stopped[i];
    box.Wrapped("  " + Who(worker.rank, worker.local_rank, worker.pid) + ": " +
                (worker.killed ? "SIGTERM, then SIGKILL" : "SIGTERM") + ", ended after " +
                Seconds(worker.after) + " with " + worker.status.ToString());
  }
  AddLeftOut(stopped.size(), box);
}

std::string Title(const ExitReport& report) {
  return report.program + " FAILED (job " + report.job_id + ", generation " +
         std::to_string(report.generation) + ", " + std::to_string(report.restarts_used) + " of " +
         std::to_string(report.restarts_max) + " restarts used)";
}

}  // namespace

std::string ExitReportText(const ExitReport& report) {
  Box box;
  box.Border();
  box.Wrapped(Title(report));
  box.Line("");
  const bool is_here = report.cause_elsewhere.empty() && !report.failures.empty();
  if (report.cause) {
    AddRootCause(*report.cause, box);
    AddFailures(report.failures, 0, "Failed on this node:", box);
  } else if (is_here) {
    AddRootCause(report.failures[0], box);
    AddFailures(report.failures, 1, "Failed later on this node:", box);
  } else {
    std::string where = "Root cause: ";
    if (report.failed_rank >= 0) where += "rank " + std::to_string(report.failed_rank) + " ";
    if (!report.failed_node.empty()) where += "on node " + report.failed_node + ": ";
    box.Wrapped(where + (report.cause_elsewhere.empty() ? "not known on this node"
                                                        : report.cause_elsewhere));
    AddFailures(report.failures, 0, "Failed on this node:", box);
  }
  AddStopped(report.stopped, box);
  box.Line("");
  box.Path("logs", report.log_root);
  if (report.log_bytes_lost > 0) {
    box.Field("", std::to_string(report.log_bytes_lost) + " bytes are missing there");
  }
  if (!report.verdict.empty()) box.Field("verdict", report.verdict);
  box.Field("exit code", std::to_string(report.exit_code));
  box.Border();
  return box.text;
}

std::string FailureLine(const FailedWorker& failure) {
  std::string line =
      "rank " + std::to_string(failure.rank) + " (local rank " + std::to_string(failure.local_rank);
  if (failure.pid > 0) line += ", pid " + std::to_string(failure.pid);
  if (!failure.node.empty()) line += ", node " + failure.node;
  line += (failure.pid > 0 ? ") failed: " : ") never started: ") + failure.status.ToString();
  if (!failure.message.empty()) {
    line += ": " + failure.message.substr(0, failure.message.find('\n'));
  }
  return CutToColumns(CleanLine(line), kFailureLineColumns);
}

std::string FailureHint(const ExitStatus& status) {
  switch (status.signal()) {
    case SIGKILL:
      return "not sent by the launcher; often the kernel's out-of-memory killer: see dmesg, or "
             "memory.events of the cgroup";
    case SIGBUS:
      return "often a full /dev/shm: see df /dev/shm";
    case SIGSEGV:
    case SIGILL:
    case SIGFPE:
    case SIGABRT:
      return "a crash in native code; /proc/sys/kernel/core_pattern says where core dumps go";
    case SIGTERM:
    case SIGINT:
    case SIGHUP:
    case SIGQUIT:
      return "not sent by the launcher";
    case SIGPIPE:
      return "it wrote to a pipe or socket that nobody reads";
    default:
      break;
  }
  if (status.signalled()) return "";
  if (status.code() == 126) return "what a shell returns for a command that it may not execute";
  if (status.code() == 127) return "what a shell returns for a command that it does not find";
  if (status.code() > 128 && status.code() < 128 + NSIG) {
    return "128 + " + std::to_string(status.code() - 128) +
           ": a process that the worker started may have ended by " +
           SignalName(status.code() - 128);
  }
  return "";
}

}  // namespace muster
