#include "rendezvous/metrics_text.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_replace.h>
#include <absl/strings/string_view.h>

#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>

#include "base/version.h"

namespace muster {
namespace {

// Beyond it not every whole number is one of double's.
constexpr double kWholeMax = 1LL << 53;

using Counts = std::map<std::string, uint64_t>;

// A label with its value in quotes.
std::string Label(absl::string_view name, absl::string_view value) {
  return absl::StrCat(name, "=\"",
                      absl::StrReplaceAll(value, {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}}),
                      "\"");
}

// Whole numbers in full: six digits are too few for a step or a time.
std::string Number(double value) {
  const bool is_whole = value == std::floor(value) && std::abs(value) < kWholeMax;
  return is_whole ? absl::StrCat(static_cast<int64_t>(value)) : absl::StrFormat("%.15g", value);
}

class Writer {
 public:
  explicit Writer(const MasterReport& report) : report_(report) {}

  void Begin(absl::string_view name, absl::string_view type, absl::string_view help) {
    name_ = std::string(name);
    absl::StrAppend(&text_, "# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n");
  }

  void Sample(const std::string& labels, double value, absl::string_view suffix = "") {
    absl::StrAppend(&text_, name_, suffix, labels.empty() ? "" : "{", labels,
                    labels.empty() ? "" : "}", " ", Number(value), "\n");
  }

  void Gauge(absl::string_view name, absl::string_view help, int64_t (*value)(const JobStatus&)) {
    Begin(name, "gauge", help);
    for (const JobReport& job : report_.jobs) {
      Sample(JobLabel(job), static_cast<double>(value(job.status)));
    }
  }

  void Counter(absl::string_view name, absl::string_view help, absl::string_view label,
               Counts JobCounters::*counts) {
    Begin(name, "counter", help);
    for (const JobReport& job : report_.jobs) {
      for (const auto& [what, count] : job.counters.*counts) {
        Sample(absl::StrCat(JobLabel(job), ",", Label(label, what)), static_cast<double>(count));
      }
    }
  }

  void Spans(absl::string_view name, absl::string_view help, Histogram JobCounters::*spans) {
    Begin(name, "histogram", help);
    for (const JobReport& job : report_.jobs) Buckets(JobLabel(job), job.counters.*spans);
  }

  void Buckets(const std::string& labels, const Histogram& histogram) {
    const std::string first = labels.empty() ? "" : labels + ",";
    for (size_t i = 0; i < Histogram::kBounds.size(); ++i) {
      Sample(absl::StrCat(first, Label("le", absl::StrCat(Histogram::kBounds[i]))),
             static_cast<double>(histogram.below[i]), "_bucket");
    }
    Sample(absl::StrCat(first, Label("le", "+Inf")), static_cast<double>(histogram.count),
           "_bucket");
    Sample(labels, histogram.sum, "_sum");
    Sample(labels, static_cast<double>(histogram.count), "_count");
  }

  static std::string JobLabel(const JobReport& job) { return Label("job", job.status.job_id); }

  std::string Take() { return std::move(text_); }

 private:
  const MasterReport& report_;
  std::string name_;
  std::string text_;
};

void WriteJobs(const MasterReport& report, Writer* writer) {
  constexpr std::array kPhases = {RoundPhase::kForming, RoundPhase::kRecovering,
                                  RoundPhase::kRunning, RoundPhase::kStopping, RoundPhase::kClosed};
  writer->Begin("muster_jobs", "gauge", "Jobs of this master by phase.");
  for (const RoundPhase phase : kPhases) {
    int jobs = 0;
    for (const JobReport& job : report.jobs) jobs += job.status.phase == phase ? 1 : 0;
    writer->Sample(Label("phase", muster::Label(phase)), jobs);
  }
}

// Of the jobs whose workers say STEP.
void WriteProgress(const MasterReport& report, int64_t unix_ms, Writer* writer) {
  writer->Begin("muster_step", "gauge", "Latest step of the node that is furthest behind.");
  for (const JobReport& job : report.jobs) {
    if (job.status.step) {
      writer->Sample(Writer::JobLabel(job), static_cast<double>(*job.status.step));
    }
  }
  writer->Begin("muster_last_progress_timestamp_seconds", "gauge",
                "When that changed, in seconds since 1970.");
  for (const JobReport& job : report.jobs) {
    if (!job.status.progress_ago) continue;
    const auto ago = std::chrono::floor<std::chrono::milliseconds>(*job.status.progress_ago);
    writer->Sample(Writer::JobLabel(job), static_cast<double>(unix_ms - ago.count()) / 1000);
  }
}

// Of the jobs that have not ended.
void WriteWorkers(const MasterReport& report, Writer* writer) {
  constexpr std::array kStates = {NodeState::kStarting,  NodeState::kRunning,  NodeState::kReady,
                                  NodeState::kDraining,  NodeState::kStopping, NodeState::kStopped,
                                  NodeState::kSucceeded, NodeState::kLeaving,  NodeState::kLost,
                                  NodeState::kLeft};
  writer->Begin("muster_agent_workers", "gauge",
                "Workers of the current generation by the state of their node.");
  for (const JobReport& job : report.jobs) {
    if (job.status.verdict) continue;
    for (const NodeState state : kStates) {
      writer->Sample(absl::StrCat(Writer::JobLabel(job), ",", Label("state", muster::Label(state))),
                     job.status.workers[static_cast<size_t>(state)]);
    }
  }
}

void WriteMaster(const MasterReport& report, Writer* writer) {
  writer->Begin("muster_heartbeat_lag_seconds", "histogram",
                "How much later than its interval a heartbeat came.");
  writer->Buckets("", report.heartbeat_lag);
  writer->Begin("muster_store_operation_duration_seconds", "histogram",
                "Writes of what outlives the master.");
  writer->Buckets("op=\"write\",outcome=\"ok\"", report.store.written);
  writer->Buckets("op=\"write\",outcome=\"error\"", report.store.failed);
  writer->Begin("muster_store_trouble", "gauge",
                "1 while the store cannot be written and jobs wait for it.");
  writer->Sample("", report.store_trouble ? 1 : 0);
}

}  // namespace

std::string MetricsText(const MasterReport& report, int64_t unix_ms) {
  Writer writer(report);
  writer.Begin("muster_build_info", "gauge", "1, with what this master is.");
  writer.Sample(Label("version", kVersion), 1);
  writer.Begin("muster_serving", "gauge", "1: this master serves; 0: it stands by.");
  writer.Sample("", report.stands_by ? 0 : 1);
  WriteJobs(report, &writer);
  writer.Gauge("muster_rendezvous_generation", "Number of the current or last generation.",
               [](const JobStatus& job) { return job.generation; });
  writer.Gauge("muster_rendezvous_members", "Nodes of the current generation.",
               [](const JobStatus& job) { return int64_t{job.members}; });
  writer.Gauge("muster_rendezvous_waiting", "Nodes that are here and no members.",
               [](const JobStatus& job) { return int64_t{job.waiting}; });
  writer.Counter("muster_rendezvous_generations_total",
                 "Generations that were assigned, by what they followed upon.", "reason",
                 &JobCounters::generations);
  writer.Counter("muster_worker_restarts_total",
                 "Workers that were started again, by what they followed upon.", "reason",
                 &JobCounters::worker_restarts);
  writer.Counter("muster_worker_exits_total",
                 "Ends of workers that were not ordered: ok, exit, signal or oom.", "kind",
                 &JobCounters::worker_exits);
  writer.Counter("muster_incidents_total", "Incidents that are over, by what caused them.", "kind",
                 &JobCounters::incidents);
  WriteWorkers(report, &writer);
  WriteProgress(report, unix_ms, &writer);
  writer.Spans("muster_rendezvous_duration_seconds",
               "From the first node's arrival, or the last worker's stop, to the assignment.",
               &JobCounters::rendezvous);
  writer.Spans("muster_recovery_duration_seconds",
               "From the beginning of an incident until all workers are at work again.",
               &JobCounters::recovery);
  WriteMaster(report, &writer);
  return writer.Take();
}

}  // namespace muster
