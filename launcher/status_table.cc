#include "launcher/status_table.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "base/one_line.h"
#include "base/table_text.h"
#include "rendezvous/status_json.h"

namespace muster {
namespace {

using Row = std::vector<std::string>;

// The reason of a job whose workers do nothing but work.
constexpr absl::string_view kAtWork = "generation_started";

// "350ms", "12s", "2m05s", "3h10m", "5d4h".
std::string Age(int64_t ms) {
  const int64_t seconds = ms / 1000;
  if (ms < 1000) return absl::StrCat(ms, "ms");
  if (seconds < 60) return absl::StrCat(seconds, "s");
  if (seconds < 3600) return absl::StrFormat("%dm%02ds", seconds / 60, seconds % 60);
  const int64_t hours = seconds / 3600;
  if (hours < 24) return absl::StrFormat("%dh%02dm", hours, seconds / 60 % 60);
  return absl::StrFormat("%dd%dh", hours / 24, hours % 24);
}

std::string OrDash(bool is_known, const std::string& text) { return is_known ? text : "-"; }

std::string Counted(int64_t number, absl::string_view noun) {
  return absl::StrCat(number, " ", noun, number == 1 ? "" : "s");
}

std::string WaitText(const v1::WaitStatus& why) {
  std::string text = OneLine(why.text());
  if (why.has_time_left_ms())
    absl::StrAppend(&text, "; at most ", Age(why.time_left_ms()), " more");
  return text;
}

std::string Restarts(const v1::JobStatus& job) {
  return absl::StrCat(job.restarts_used(), "/", job.restarts_max());
}

// What the job does, or what it waits for.
std::string Headline(const v1::JobStatus& job) {
  if (job.has_verdict()) {
    if (job.verdict().succeeded()) return "succeeded";
    return absl::StrCat(OneLine(job.verdict().cause()), " (exit code ", job.verdict().exit_code(),
                        ")");
  }
  if (job.phase() != v1::JOB_PHASE_RUNNING) return WaitText(job.why());
  const bool is_at_work = job.why().reason() == kAtWork || job.why().text().empty();
  std::string text = is_at_work ? "" : WaitText(job.why()) + "; ";
  absl::StrAppend(&text, "generation ", job.generation(), " runs");
  if (job.has_generation_age_ms()) absl::StrAppend(&text, " for ", Age(job.generation_age_ms()));
  absl::StrAppend(&text, " on ", Counted(job.members(), "node"), " with ",
                  Counted(job.world_size(), "worker"));
  if (job.has_step()) {
    absl::StrAppend(&text, "; step ", job.step(), " ", Age(job.progress_ago_ms()), " ago");
  }
  if (job.waiting() > 0) absl::StrAppend(&text, "; ", Counted(job.waiting(), "node"), " waiting");
  return absl::StrCat(text, "; ", job.restarts_used(), " of ", job.restarts_max(),
                      " restarts used");
}

// "stopping: 1 of 2 members have stopped": many a reason begins with the phase.
std::string PhaseAndHeadline(const v1::JobStatus& job) {
  const std::string phase = absl::StrCat(Word(job.phase()), ": ");
  const std::string headline = Headline(job);
  return absl::StartsWith(headline, phase) ? headline : phase + headline;
}

std::string Ranks(const v1::NodeStatus& node) {
  if (!node.has_first_rank()) return "-";
  if (node.slots() <= 1) return absl::StrCat(node.first_rank());
  return absl::StrCat(node.first_rank(), "-", node.first_rank() + node.slots() - 1);
}

std::string Nodes(const v1::JobStatus& job, bool is_wide) {
  std::vector<Row> rows = {{"NODE", "STATE", "RANKS", "STEP", "PROGRESS", "HEARTBEAT"}};
  if (is_wide) rows.back().emplace_back("ADDRESS");
  rows.back().emplace_back("REASON");
  for (const v1::NodeStatus& node : job.nodes()) {
    const std::string id = OneLine(node.node_id());
    rows.push_back({OrDash(!id.empty(), id), Word(node.state()), Ranks(node),
                    OrDash(node.has_step(), absl::StrCat(node.step())),
                    OrDash(node.has_progress_ago_ms(), Age(node.progress_ago_ms())),
                    OrDash(node.has_heard_ago_ms(), Age(node.heard_ago_ms()))});
    if (is_wide) rows.back().push_back(OrDash(!node.address().empty(), OneLine(node.address())));
    rows.back().push_back(node.has_why() ? WaitText(node.why()) : "");
  }
  return AlignedColumns(rows);
}

std::string Incidents(const v1::JobStatus& job) {
  if (job.incidents().empty()) return "";
  std::vector<Row> rows = {{"INCIDENT", "TIME", "GENERATION", "KIND", "OUTCOME", "CHARGED",
                            "DETECT", "STOP", "RENDEZVOUS", "START", "READY", "CAUSE"}};
  for (const v1::IncidentStatus& incident : job.incidents()) {
    rows.push_back(
        {absl::StrCat(incident.number()), TimeText(incident.unix_ms()),
         absl::StrCat(incident.generation()), Word(incident.kind()), Word(incident.outcome()),
         incident.charged() ? "yes" : "no", Age(incident.detect_ms()),
         OrDash(incident.has_stop_ms(), Age(incident.stop_ms())),
         OrDash(incident.has_rendezvous_ms(), Age(incident.rendezvous_ms())),
         OrDash(incident.has_start_ms(), Age(incident.start_ms())),
         OrDash(incident.has_ready_ms(), Age(incident.ready_ms())), OneLine(incident.text())});
  }
  return "\n" + AlignedColumns(rows);
}

// What stands in the way of all jobs.
std::string Trouble(const v1::StatusResponse& status) {
  if (!status.has_store_trouble()) return "";
  const v1::StoreTrouble& trouble = status.store_trouble();
  return absl::StrCat("the state cannot be written since ",
                      TimeText(status.unix_ms() - trouble.age_ms()), ": ", OneLine(trouble.why()),
                      "; jobs wait\n");
}

std::string Jobs(const v1::StatusResponse& status) {
  std::vector<Row> rows = {
      {"JOB", "PHASE", "GENERATION", "NODES", "WORKERS", "STEP", "RESTARTS", "AGE", "REASON"}};
  for (const v1::JobStatus& job : status.jobs()) {
    rows.push_back({OneLine(job.job_id()), Word(job.phase()), absl::StrCat(job.generation()),
                    absl::StrCat(job.members()), absl::StrCat(job.world_size()),
                    OrDash(job.has_step(), absl::StrCat(job.step())), Restarts(job),
                    OrDash(job.has_generation_age_ms(), Age(job.generation_age_ms())),
                    Headline(job)});
  }
  return AlignedColumns(rows);
}

}  // namespace

std::string StatusTable(const v1::StatusResponse& status, bool is_wide) {
  const std::string trouble = Trouble(status);
  if (status.jobs().empty()) return trouble + "no jobs\n";
  if (status.jobs_size() > 1) return trouble + Jobs(status);
  const v1::JobStatus& job = status.jobs(0);
  return absl::StrCat(trouble, OneLine(job.job_id()), ": ", PhaseAndHeadline(job), "\n",
                      job.nodes().empty() ? "" : Nodes(job, is_wide),
                      is_wide ? Incidents(job) : "");
}

}  // namespace muster
