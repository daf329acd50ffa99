#include "rendezvous/incident_codec.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "rendezvous/message_codec.h"
#include "rendezvous/settings.h"

namespace muster {
namespace {

constexpr int kIncidentsMax = 1000;
// Of each text: a job keeps many incidents, and all are written anew when one of them changes.
constexpr size_t kIncidentTextBytesMax = 1024;

int64_t Nanoseconds(Duration span) {
  return std::clamp(span, Duration::zero(), kLongestTimeout).count();
}

void EncodeTo(const IncidentRecord& from, v1::PastIncident* to) {
  to->set_number(from.number);
  to->set_generation(from.generation);
  to->set_next_generation(from.next_generation);
  to->set_unix_ms(from.unix_ms);
  EncodeReason(from.cause, kIncidentTextBytesMax, to->mutable_cause());
  to->set_kind(static_cast<v1::PastKind>(from.kind));
  to->set_charged(from.charged);
  to->set_outcome(static_cast<v1::PastOutcome>(from.outcome));
  to->set_failed_node(WireText(from.failed_node, kIdBytesMax));
  if (from.failed_rank >= 0) to->set_failed_rank(from.failed_rank);
  to->set_exit_code(from.failed_status.code());
  to->set_signal(from.failed_status.signal());
  to->set_core_dumped(from.failed_status.core_dumped());
  to->set_out_of_memory(from.out_of_memory);
  to->set_detect_ns(Nanoseconds(from.detect));
  if (from.stop) to->set_stop_ns(Nanoseconds(*from.stop));
  if (from.rendezvous) to->set_rendezvous_ns(Nanoseconds(*from.rendezvous));
  if (from.start) to->set_start_ns(Nanoseconds(*from.start));
  if (from.ready) to->set_ready_ns(Nanoseconds(*from.ready));
}

template <typename Kind>
IncidentKind DecodeKind(FieldCheck* check, Kind kind) {
  if (kind < v1::PAST_KIND_MEMBERSHIP || kind > v1::PAST_KIND_OUT_OF_MEMORY) {
    check->UnknownEnum("kind", kind);
  }
  return static_cast<IncidentKind>(kind);
}

template <typename Outcome>
IncidentOutcome DecodeOutcome(FieldCheck* check, Outcome outcome) {
  if (outcome < v1::PAST_OUTCOME_OPEN || outcome > v1::PAST_OUTCOME_JOB_ENDED) {
    check->UnknownEnum("outcome", outcome);
  }
  return static_cast<IncidentOutcome>(outcome);
}

IncidentRecord DecodeIncident(FieldCheck* check, const v1::PastIncident& from) {
  IncidentRecord to;
  to.number = from.number();
  to.generation = check->Generation(from.generation());
  to.next_generation = check->Generation(from.next_generation());
  to.unix_ms = from.unix_ms();
  to.cause = DecodeReason(check, from.cause());
  to.kind = DecodeKind(check, from.kind());
  to.charged = from.charged();
  to.outcome = DecodeOutcome(check, from.outcome());
  to.failed_node = check->Text("failed_node", from.failed_node(), kIdBytesMax);
  if (from.has_failed_rank()) {
    to.failed_rank = check->Range("failed_rank", from.failed_rank(), 0, INT32_MAX);
  }
  const int code = check->Int("exit_code", from.exit_code(), 0, 255);
  const int signal = check->Int("signal", from.signal(), 0, 127);
  to.failed_status =
      signal != 0 ? ExitStatus::Signalled(signal, from.core_dumped()) : ExitStatus::Exited(code);
  to.out_of_memory = from.out_of_memory();
  to.detect = check->Span("detect", from.detect_ns());
  if (from.has_stop_ns()) to.stop = check->Span("stop", from.stop_ns());
  if (from.has_rendezvous_ns()) to.rendezvous = check->Span("rendezvous", from.rendezvous_ns());
  if (from.has_start_ns()) to.start = check->Span("start", from.start_ns());
  if (from.has_ready_ns()) to.ready = check->Span("ready", from.ready_ns());
  return to;
}

}  // namespace

void EncodeReason(const Reason& from, size_t text_bytes_max, v1::KeptReason* to) {
  to->set_label(Label(from.code));
  to->set_subject(WireText(from.subject, text_bytes_max));
  to->set_a(from.a);
  to->set_b(from.b);
  to->set_detail(WireText(from.detail, text_bytes_max));
}

Reason DecodeReason(FieldCheck* check, const v1::KeptReason& from) {
  Reason to;
  to.subject = check->Text("reason.subject", from.subject(), kTextBytesMax);
  to.a = from.a();
  to.b = from.b();
  to.detail = check->Text("reason.detail", from.detail(), kTextBytesMax);
  for (int code = 0; code <= static_cast<int>(kLastReasonCode); ++code) {
    to.code = static_cast<ReasonCode>(code);
    if (from.label() == Label(to.code)) return to;
  }
  check->Fail("its reason is unknown");
  return to;
}

void EncodeIncidents(const std::vector<IncidentRecord>& from, v1::KeptJob* to) {
  for (const IncidentRecord& record : from) EncodeTo(record, to->add_incidents());
}

std::vector<IncidentRecord> DecodeIncidents(FieldCheck* check, const v1::KeptJob& from) {
  std::vector<IncidentRecord> to;
  check->Range("incidents", from.incidents_size(), 0, kIncidentsMax);
  for (const v1::PastIncident& wire : from.incidents()) {
    const uint64_t before = to.empty() ? 0 : to.back().number;
    to.push_back(DecodeIncident(check, wire));
    if (to.back().number <= before) check->Fail("the numbers of its incidents do not grow");
  }
  return to;
}

}  // namespace muster
