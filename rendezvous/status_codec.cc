#include "rendezvous/status_codec.h"

#include <chrono>
#include <optional>
#include <string>

#include "base/version.h"

namespace muster {
namespace {

int64_t Milliseconds(Duration span) {
  return std::chrono::floor<std::chrono::milliseconds>(span).count();
}

void EncodeWait(const std::string& label, const std::string& text,
                const std::optional<Duration>& time_left, v1::WaitStatus* to) {
  to->set_reason(label);
  to->set_text(text);
  if (time_left) to->set_time_left_ms(Milliseconds(*time_left));
}

void EncodeTo(const NodeStatus& from, v1::NodeStatus* to) {
  to->set_node_id(from.id);
  to->set_state(static_cast<v1::NodeState>(from.state));
  to->set_address(from.address);
  if (from.group_rank >= 0) to->set_group_rank(from.group_rank);
  if (from.first_rank >= 0) to->set_first_rank(from.first_rank);
  to->set_slots(from.slots);
  if (from.heard_ago) to->set_heard_ago_ms(Milliseconds(*from.heard_ago));
  if (from.step) to->set_step(*from.step);
  if (from.progress_ago) to->set_progress_ago_ms(Milliseconds(*from.progress_ago));
  if (!from.reason.empty()) {
    EncodeWait(from.reason_label, from.reason, from.time_left, to->mutable_why());
  }
}

void EncodeTo(const JobStatus& from, v1::JobStatus* to) {
  to->set_job_id(from.job_id);
  to->set_instance(from.instance);
  to->set_phase(static_cast<v1::JobPhase>(from.phase));
  to->set_generation(from.generation);
  if (from.generation_age) to->set_generation_age_ms(Milliseconds(*from.generation_age));
  EncodeWait(from.reason_label, from.reason, from.time_left, to->mutable_why());
  to->set_nodes_min(from.nodes_min);
  to->set_nodes_max(from.nodes_max);
  to->set_members(from.members);
  to->set_waiting(from.waiting);
  to->set_world_size(from.world_size);
  to->set_restarts_used(from.restarts_used);
  to->set_restarts_max(from.restarts_max);
  if (from.step) to->set_step(*from.step);
  if (from.progress_ago) to->set_progress_ago_ms(Milliseconds(*from.progress_ago));
  if (from.verdict) {
    to->mutable_verdict()->set_succeeded(from.verdict->succeeded);
    to->mutable_verdict()->set_exit_code(from.verdict->exit_code);
    to->mutable_verdict()->set_cause(from.verdict->cause);
  }
  for (const NodeStatus& node : from.nodes) EncodeTo(node, to->add_nodes());
  for (const IncidentRecord& record : from.incidents) *to->add_incidents() = Encode(record);
}

}  // namespace

// The enums are in the same order (status_codec_test).
v1::IncidentStatus Encode(const IncidentRecord& record) {
  v1::IncidentStatus to;
  to.set_number(record.number);
  to.set_generation(record.generation);
  to.set_next_generation(record.next_generation);
  to.set_unix_ms(record.unix_ms);
  to.set_reason(Label(record.cause.code));
  to.set_text(Sentence(record.cause));
  to.set_kind(static_cast<v1::IncidentKind>(record.kind));
  to.set_charged(record.charged);
  to.set_outcome(static_cast<v1::IncidentOutcome>(record.outcome));
  to.set_failed_node(record.failed_node);
  if (record.failed_rank >= 0) to.set_failed_rank(record.failed_rank);
  if (!record.failed_node.empty()) {
    const ExitStatus& status = record.failed_status;
    to.set_failed_status(status.ToString());
    if (status.signalled()) {
      to.set_failed_signal(status.signal());
    } else {
      to.set_failed_exit_code(status.code());
    }
    to.set_out_of_memory(record.out_of_memory);
  }
  to.set_detect_ms(Milliseconds(record.detect));
  if (record.stop) to.set_stop_ms(Milliseconds(*record.stop));
  if (record.rendezvous) to.set_rendezvous_ms(Milliseconds(*record.rendezvous));
  if (record.start) to.set_start_ms(Milliseconds(*record.start));
  if (record.ready) to.set_ready_ms(Milliseconds(*record.ready));
  return to;
}

v1::StatusResponse Encode(const MasterReport& report, int64_t unix_ms) {
  v1::StatusResponse to;
  to.set_version(std::string(kVersion));
  to.set_unix_ms(unix_ms);
  for (const JobReport& job : report.jobs) EncodeTo(job.status, to.add_jobs());
  if (report.store_trouble) {
    to.mutable_store_trouble()->set_why(report.store_trouble->why);
    to.mutable_store_trouble()->set_age_ms(Milliseconds(report.store_trouble->age));
  }
  return to;
}

}  // namespace muster
