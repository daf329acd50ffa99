#include "rendezvous/status_json.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>
#include <absl/time/time.h>

#include "base/exit_status.h"
#include "base/json_text.h"

namespace muster {
namespace {

// Builds an object or a list, with line breaks when `indent` is not negative.
class JsonBlock {
 public:
  JsonBlock(char open, char close, int indent) : text_(1, open), close_(close), indent_(indent) {}

  void Add(absl::string_view name, const std::string& json) {
    absl::StrAppend(&text_, is_empty_ ? "" : ",", Break(indent_ + 1),
                    JsonString({name.data(), name.size()}), indent_ < 0 ? ":" : ": ", json);
    is_empty_ = false;
  }
  void AddItem(const std::string& json) {
    absl::StrAppend(&text_, is_empty_ ? "" : ",", Break(indent_ + 1), json);
    is_empty_ = false;
  }
  void AddText(absl::string_view name, const std::string& text) { Add(name, JsonString(text)); }
  void AddNumber(absl::string_view name, int64_t number) { Add(name, absl::StrCat(number)); }
  void AddNumber(absl::string_view name, bool is_known, int64_t number) {
    Add(name, is_known ? absl::StrCat(number) : "null");
  }
  void AddBool(absl::string_view name, bool value) { Add(name, value ? "true" : "false"); }

  std::string Done() {
    return absl::StrCat(text_, is_empty_ ? "" : Break(indent_), std::string(1, close_));
  }
  int inner() const { return indent_ < 0 ? -1 : indent_ + 1; }

 private:
  std::string Break(int depth) const {
    return indent_ < 0 ? "" : absl::StrCat("\n", std::string(2 * depth, ' '));
  }

  std::string text_;
  const char close_;
  const int indent_;
  bool is_empty_ = true;
};

std::string WaitJson(const v1::WaitStatus& why) {
  JsonBlock json('{', '}', -1);
  json.AddText("reason", why.reason());
  json.AddText("text", why.text());
  json.AddNumber("time_left_ms", why.has_time_left_ms(), why.time_left_ms());
  return json.Done();
}

std::string NodeJson(const v1::NodeStatus& node) {
  JsonBlock json('{', '}', -1);
  json.AddText("node", node.node_id());
  json.AddText("state", Word(node.state()));
  json.AddText("address", node.address());
  json.AddNumber("group_rank", node.has_group_rank(), node.group_rank());
  json.AddNumber("first_rank", node.has_first_rank(), node.first_rank());
  json.AddNumber("slots", node.slots());
  json.AddNumber("heard_ago_ms", node.has_heard_ago_ms(), node.heard_ago_ms());
  json.AddNumber("step", node.has_step(), node.step());
  json.AddNumber("progress_ago_ms", node.has_progress_ago_ms(), node.progress_ago_ms());
  json.Add("why", node.has_why() ? WaitJson(node.why()) : "null");
  return json.Done();
}

void AddFields(const v1::IncidentStatus& incident, JsonBlock* json) {
  json->AddNumber("incident", static_cast<int64_t>(incident.number()));
  json->AddText("time", TimeText(incident.unix_ms()));
  json->AddText("outcome", Word(incident.outcome()));
  json->AddNumber("generation", incident.generation());
  json->AddNumber("next_generation", incident.next_generation() != 0, incident.next_generation());
  json->AddText("kind", Word(incident.kind()));
  json->AddText("reason", incident.reason());
  json->AddText("text", incident.text());
  json->AddBool("charged", incident.charged());
  json->Add("failed_node",
            incident.failed_node().empty() ? "null" : JsonString(incident.failed_node()));
  json->AddNumber("failed_rank", incident.has_failed_rank(), incident.failed_rank());
  json->Add("failed_status",
            incident.failed_status().empty() ? "null" : JsonString(incident.failed_status()));
  json->AddNumber("failed_exit_code", incident.has_failed_exit_code(), incident.failed_exit_code());
  json->Add("failed_signal", incident.has_failed_signal()
                                 ? JsonString(SignalName(incident.failed_signal()))
                                 : "null");
  json->AddBool("out_of_memory", incident.out_of_memory());
  json->AddNumber("detect_ms", incident.detect_ms());
  json->AddNumber("stop_ms", incident.has_stop_ms(), incident.stop_ms());
  json->AddNumber("rendezvous_ms", incident.has_rendezvous_ms(), incident.rendezvous_ms());
  json->AddNumber("start_ms", incident.has_start_ms(), incident.start_ms());
  json->AddNumber("ready_ms", incident.has_ready_ms(), incident.ready_ms());
  json->AddNumber("total_ms", incident.detect_ms() + incident.stop_ms() + incident.rendezvous_ms() +
                                  incident.start_ms() + incident.ready_ms());
}

std::string VerdictJson(const v1::JobVerdict& verdict) {
  JsonBlock json('{', '}', -1);
  json.AddBool("succeeded", verdict.succeeded());
  json.AddNumber("exit_code", verdict.exit_code());
  json.AddText("cause", verdict.cause());
  return json.Done();
}

std::string StoreTroubleJson(const v1::StoreTrouble& trouble) {
  JsonBlock json('{', '}', -1);
  json.AddText("why", trouble.why());
  json.AddNumber("age_ms", trouble.age_ms());
  return json.Done();
}

std::string JobJson(const v1::JobStatus& job, int indent) {
  JsonBlock json('{', '}', indent);
  json.AddText("job", job.job_id());
  json.AddNumber("instance", static_cast<int64_t>(job.instance()));
  json.AddText("phase", Word(job.phase()));
  json.AddNumber("generation", job.generation());
  json.AddNumber("generation_age_ms", job.has_generation_age_ms(), job.generation_age_ms());
  json.Add("why", WaitJson(job.why()));
  json.AddNumber("nodes_min", job.nodes_min());
  json.AddNumber("nodes_max", job.nodes_max());
  json.AddNumber("members", job.members());
  json.AddNumber("waiting", job.waiting());
  json.AddNumber("world_size", job.world_size());
  json.AddNumber("restarts_used", job.restarts_used());
  json.AddNumber("restarts_max", job.restarts_max());
  json.AddNumber("step", job.has_step(), job.step());
  json.AddNumber("progress_ago_ms", job.has_progress_ago_ms(), job.progress_ago_ms());
  json.Add("verdict", job.has_verdict() ? VerdictJson(job.verdict()) : "null");
  JsonBlock nodes('[', ']', json.inner());
  for (const v1::NodeStatus& node : job.nodes()) nodes.AddItem(NodeJson(node));
  json.Add("nodes", nodes.Done());
  JsonBlock incidents('[', ']', json.inner());
  for (const v1::IncidentStatus& incident : job.incidents()) {
    JsonBlock fields('{', '}', -1);
    AddFields(incident, &fields);
    incidents.AddItem(fields.Done());
  }
  json.Add("incidents", incidents.Done());
  return json.Done();
}

// "JOB_PHASE_RUNNING" without its prefix, in small letters.
std::string WordOf(absl::string_view name, absl::string_view prefix) {
  return absl::AsciiStrToLower(name.substr(prefix.size()));
}

}  // namespace

std::string Word(v1::JobPhase phase) { return WordOf(v1::JobPhase_Name(phase), "JOB_PHASE_"); }
std::string Word(v1::NodeState state) { return WordOf(v1::NodeState_Name(state), "NODE_STATE_"); }
std::string Word(v1::IncidentKind kind) {
  return WordOf(v1::IncidentKind_Name(kind), "INCIDENT_KIND_");
}
std::string Word(v1::IncidentOutcome outcome) {
  return WordOf(v1::IncidentOutcome_Name(outcome), "INCIDENT_OUTCOME_");
}

std::string TimeText(int64_t unix_ms) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::FromUnixMillis(unix_ms),
                          absl::UTCTimeZone());
}

std::string StatusJson(const v1::StatusResponse& status) {
  JsonBlock json('{', '}', 0);
  json.AddText("version", status.version());
  json.AddText("time", TimeText(status.unix_ms()));
  json.Add("store_trouble",
           status.has_store_trouble() ? StoreTroubleJson(status.store_trouble()) : "null");
  JsonBlock jobs('[', ']', json.inner());
  for (const v1::JobStatus& job : status.jobs()) jobs.AddItem(JobJson(job, jobs.inner()));
  json.Add("jobs", jobs.Done());
  return json.Done() + "\n";
}

std::string IncidentJson(const std::string& job_id, uint64_t instance,
                         const v1::IncidentStatus& incident) {
  JsonBlock json('{', '}', -1);
  json.AddText("job", job_id);
  json.AddNumber("instance", static_cast<int64_t>(instance));
  AddFields(incident, &json);
  return json.Done() + "\n";
}

}  // namespace muster
