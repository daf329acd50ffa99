#include "agent/report_json.h"

#include <string_view>

#include "agent/report_text.h"
#include "base/json_text.h"

namespace muster {
namespace {

// An object as it grows; one member a line.
class Object {
 public:
  explicit Object(int depth) : indent_(2 * static_cast<size_t>(depth), ' ') {}

  Object& Raw(std::string_view name, const std::string& json) {
    text_ += text_.empty() ? "{\n" : ",\n";
    text_ += indent_ + "  " + JsonString(name) + ": " + json;
    return *this;
  }
  Object& Text(std::string_view name, std::string_view value) {
    return Raw(name, JsonString(value));
  }
  // Left out when empty.
  Object& Some(std::string_view name, std::string_view value) {
    return value.empty() ? *this : Text(name, value);
  }
  Object& Number(std::string_view name, int64_t value) { return Raw(name, std::to_string(value)); }
  Object& Bool(std::string_view name, bool value) { return Raw(name, value ? "true" : "false"); }

  std::string End() const { return text_.empty() ? "{}" : text_ + "\n" + indent_ + "}"; }

 private:
  std::string indent_;
  std::string text_;
};

template <typename List, typename ToJson>
std::string Array(const List& list, int depth, const ToJson& to_json) {
  const std::string indent(2 * static_cast<size_t>(depth), ' ');
  std::string text;
  for (const auto& item : list) {
    text += text.empty() ? "[\n" : ",\n";
    text += indent + "  " + to_json(item, depth + 1);
  }
  return text.empty() ? "[]" : text + "\n" + indent + "]";
}

void AddStatus(const ExitStatus& status, Object& object) {
  if (status.signalled()) {
    object.Number("signal", status.signal()).Text("signal_name", SignalName(status.signal()));
    object.Bool("core_dumped", status.core_dumped());
  } else {
    object.Number("exit_code", status.code());
  }
}

std::string FailureJson(const FailedWorker& failure, int depth) {
  Object object(depth);
  object.Text("node", failure.node).Some("host", failure.host);
  object.Number("rank", failure.rank).Number("local_rank", failure.local_rank);
  object.Number("pid", failure.pid);
  AddStatus(failure.status, object);
  if (failure.unix_ms > 0) object.Number("time_ms", failure.unix_ms);
  object.Some("message", failure.message);
  object.Some("hint", failure.hint.empty() ? FailureHint(failure.status) : failure.hint);
  object.Some("stderr", failure.stderr_tail).Some("log", failure.log_path);
  object.Some("error_file", failure.error_file);
  return object.End();
}

std::string WorkerJson(const ReportedWorker& worker, int depth) {
  Object object(depth);
  object.Number("rank", worker.rank).Number("local_rank", worker.local_rank);
  object.Number("pid", worker.pid);
  AddStatus(worker.status, object);
  object.Bool("stopped_by_launcher", worker.stopped_by_us).Number("uptime_ms", worker.uptime_ms);
  return object.End();
}

std::string IncidentJson(const ReportedIncident& incident, int depth) {
  Object object(depth);
  object.Number("generation", incident.generation);
  object.Number("restart_count", incident.restart_count);
  object.Number("began_ms", incident.began_ms).Number("ended_ms", incident.ended_ms);
  object.Raw("failure",
             incident.failure ? FailureJson(*incident.failure, depth + 1) : std::string("null"));
  return object.End();
}

// `text` without its beginning where it is longer; no character is cut in two.
std::string_view LastBytes(std::string_view text, size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  text.remove_prefix(text.size() - bytes_max);
  while (!text.empty() && (static_cast<unsigned char>(text[0]) & 0xC0) == 0x80) {
    text.remove_prefix(1);
  }
  return text;
}

std::string_view FirstBytes(std::string_view text, size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  while (bytes_max > 0 && (static_cast<unsigned char>(text[bytes_max]) & 0xC0) == 0x80) --bytes_max;
  return text.substr(0, bytes_max);
}

}  // namespace

std::string JobReportJson(const JobReport& report) {
  Object object(0);
  object.Number("version", 1).Text("job", report.exit.job_id).Text("program", report.exit.program);
  object.Text("node", report.node).Text("host", report.host);
  object.Bool("succeeded", report.exit.exit_code == 0);
  object.Number("exit_code", report.exit.exit_code);
  object.Number("began_ms", report.began_ms).Number("ended_ms", report.ended_ms);
  object.Number("generation", report.exit.generation);
  object.Number("restarts_used", report.exit.restarts_used);
  object.Number("restarts_max", report.exit.restarts_max);
  if (report.leaving_signal != 0) object.Text("stopped_by", SignalName(report.leaving_signal));
  object.Some("reason", report.reason).Some("logs", report.exit.log_root);
  object.Number("log_bytes_lost", report.exit.log_bytes_lost);
  object.Raw("cause", report.cause ? FailureJson(*report.cause, 1) : std::string("null"));
  object.Raw("workers", Array(report.workers, 1, WorkerJson));
  object.Raw("incidents", Array(report.incidents, 1, IncidentJson));
  object.Number("incidents_left_out", report.incidents_left_out);
  return object.End() + "\n";
}

std::string ErrorFileJson(const FailedWorker& cause, const std::string& traceback, int exit_code) {
  const std::string message = cause.message.empty() ? FailureLine(cause) : cause.message;
  const std::string& last = cause.stderr_tail.empty() ? message : cause.stderr_tail;
  Object extra(2);
  extra.Text("py_callstack", traceback.empty() ? last : traceback);
  extra.Text("timestamp", std::to_string(cause.unix_ms / 1000));
  Object inner(1);
  inner.Text("message", message).Number("errorCode", exit_code).Raw("extraInfo", extra.End());
  return Object(0).Raw("message", inner.End()).End() + "\n";
}

std::string TerminationText(const JobReport& report, size_t bytes_max) {
  std::string text = report.cause ? FailureLine(*report.cause) : CleanLine(report.reason);
  if (text.empty()) text = "exit code " + std::to_string(report.exit.exit_code);
  text += "\n";
  if (report.cause) {
    for (const std::string& part : {report.cause->message, report.cause->hint}) {
      for (const std::string& line : CleanLines(part)) text += line + "\n";
    }
  }
  text = FirstBytes(text, bytes_max);
  if (!report.cause) return text;
  std::string tail;
  for (const std::string& line : CleanLines(report.cause->stderr_tail)) tail += line + "\n";
  return text.append(LastBytes(tail, bytes_max - text.size()));
}

}  // namespace muster
