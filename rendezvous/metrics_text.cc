#include "rendezvous/metrics_text.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_replace.h>
#include <absl/strings/string_view.h>

#include <array>
#include <cstdint>
#include <functional>
#include <map>

#include "base/version.h"

namespace muster {
namespace {

using Counts = std::map<std::string, uint64_t>;

// A label with its value in quotes.
std::string Label(absl::string_view name, absl::string_view value) {
  return absl::StrCat(name, "=\"",
                      absl::StrReplaceAll(value, {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}}),
                      "\"");
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
                    labels.empty() ? "" : "}", " ", value, "\n");
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
    for (const JobReport& job : report_.jobs) {
      const Histogram& histogram = job.counters.*spans;
      const std::string label = JobLabel(job);
      for (size_t i = 0; i < Histogram::kBounds.size(); ++i) {
        Sample(absl::StrCat(label, ",", Label("le", absl::StrCat(Histogram::kBounds[i]))),
               static_cast<double>(histogram.below[i]), "_bucket");
      }
      Sample(absl::StrCat(label, ",", Label("le", "+Inf")), static_cast<double>(histogram.count),
             "_bucket");
      Sample(label, histogram.sum, "_sum");
      Sample(label, static_cast<double>(histogram.count), "_count");
    }
  }

  std::string Take() { return std::move(text_); }

 private:
  static std::string JobLabel(const JobReport& job) { return Label("job", job.status.job_id); }

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

}  // namespace

std::string MetricsText(const MasterReport& report) {
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
                 "Ends of workers that were not ordered: ok, exit or signal.", "kind",
                 &JobCounters::worker_exits);
  writer.Spans("muster_rendezvous_duration_seconds",
               "From the first node's arrival, or the last worker's stop, to the assignment.",
               &JobCounters::rendezvous);
  writer.Spans("muster_recovery_duration_seconds",
               "From the beginning of an incident until all workers are at work again.",
               &JobCounters::recovery);
  return writer.Take();
}

}  // namespace muster
