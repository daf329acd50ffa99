#include "rendezvous/state_codec.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <set>
#include <utility>
#include <variant>

#include "proto/state.pb.h"
#include "rendezvous/field_check.h"
#include "rendezvous/incident_codec.h"
#include "rendezvous/message_codec.h"

namespace muster {
namespace {

constexpr int kNodesMax = 1 << 20;
constexpr int kCountMax = 1 << 30;

v1::WorkersPhase Encode(WorkersPhase phase) { return static_cast<v1::WorkersPhase>(phase); }

void EncodeSeats(const JobRecord& from, v1::KeptJob* to) {
  if (from.seats.empty()) return;
  to->set_world_size(from.world_size);
  to->set_master_addr(WireText(from.master_addr, kHostBytesMax));
  to->set_master_port(from.master_port);
  to->set_restart_count(from.restart_count);
  for (const SeatRecord& seat : from.seats) {
    v1::KeptSeat* wire = to->add_seats();
    wire->set_node_id(WireText(seat.node_id, kIdBytesMax));
    wire->set_incarnation(seat.incarnation);
    wire->set_rank_base(seat.rank_base);
    wire->set_role_rank_base(seat.role_rank_base);
    wire->set_role_world_size(seat.role_world_size);
    wire->set_phase(Encode(seat.phase));
    wire->set_drained(seat.drained);
  }
}

void EncodeNodes(const JobRecord& from, v1::KeptJob* to) {
  for (const NodeRecord& node : from.nodes) {
    v1::KeptNode* wire = to->add_nodes();
    wire->set_id(WireText(node.id, kIdBytesMax));
    wire->set_incarnation(node.incarnation);
    if (node.last_group_rank >= 0) wire->set_last_group_rank(node.last_group_rank);
    wire->set_leaving(node.leaving);
    wire->set_draining(node.draining);
    wire->set_lost(node.lost);
    for (const uint64_t incarnation : node.retired) wire->add_retired(incarnation);
  }
}

void EncodeFailures(const JobRecord& from, v1::KeptJob* to) {
  for (const std::string& id : from.lost) to->add_lost(WireText(id, kIdBytesMax));
  for (const FailureRecord& node : from.failures) {
    v1::KeptFailures* wire = to->add_failures();
    wire->set_node_id(WireText(node.node_id, kIdBytesMax));
    for (const Duration before : node.before_latest) {
      wire->add_before_latest_ns(std::min(before, kLongestTimeout).count());
    }
  }
}

void EncodeDrain(const DrainRecord& from, v1::KeptDrain* to) {
  to->set_who(WireText(from.who, kTextBytesMax));
  to->set_whole_job(from.whole_job);
  to->set_patience_ns(from.patience.count());
}

void EncodeIncident(const Incident& from, v1::KeptIncident* to) {
  to->set_member_gone(from.member_gone());
  to->set_planned(from.planned());
  if (!from.root_cause()) return;
  to->set_failed_node(WireText(from.root_cause()->node_id, kIdBytesMax));
  *to->mutable_failure() = muster::Encode(AgentMessage(from.root_cause()->what)).worker_failed();
}

// Takes what another decoder found, or remembers why it found nothing.
template <typename Part, typename Whole>
Part Take(FieldCheck* check, const char* field, absl::StatusOr<Whole> whole) {
  if (whole.ok()) {
    if constexpr (std::is_same_v<Part, Whole>) {
      return *std::move(whole);
    } else {
      return std::get<Part>(*std::move(whole));
    }
  }
  check->Fail(absl::StrCat(field, ": ", whole.status().message()));
  return Part();
}

template <typename Stage>
JobRecord::Stage DecodeStage(FieldCheck* check, Stage stage) {
  if (stage < v1::JOB_STAGE_FORMING || stage > v1::JOB_STAGE_CLOSED) {
    check->UnknownEnum("stage", stage);
  }
  return static_cast<JobRecord::Stage>(stage);
}

void DecodeSeats(FieldCheck* check, const v1::KeptJob& from, JobRecord* to) {
  if (from.seats().empty()) return;
  check->Range("seats", from.seats_size(), 1, kNodesMax);
  to->world_size = check->Int("world_size", from.world_size(), 1, kCountMax);
  to->master_addr = check->Text("master_addr", from.master_addr(), kHostBytesMax);
  to->master_port = check->Port("master_port", from.master_port());
  to->restart_count = check->Int("restart_count", from.restart_count(), 0, kCountMax);
  std::set<std::string> ids;
  int last_base = -1;
  for (const v1::KeptSeat& wire : from.seats()) {
    SeatRecord seat;
    seat.node_id = check->Text("seats.node_id", wire.node_id(), kIdBytesMax);
    seat.incarnation = wire.incarnation();
    seat.rank_base = check->Int("rank_base", wire.rank_base(), 0, to->world_size - 1);
    seat.role_rank_base = check->Int("role_rank_base", wire.role_rank_base(), 0, seat.rank_base);
    seat.role_world_size = check->Int("role_world_size", wire.role_world_size(), 1, to->world_size);
    const bool is_known = wire.phase() == v1::WORKERS_PHASE_RUNNING ||
                          wire.phase() == v1::WORKERS_PHASE_STOPPED ||
                          wire.phase() == v1::WORKERS_PHASE_SUCCEEDED;
    if (!is_known) check->UnknownEnum("seats.phase", wire.phase());
    seat.phase = static_cast<WorkersPhase>(wire.phase());
    seat.drained = wire.drained();
    if (!seat.node_id.empty() && !ids.insert(seat.node_id).second) {
      check->Fail("node " + seat.node_id + " has two seats");
    }
    if (seat.incarnation != 0) {
      if (seat.node_id.empty()) check->Fail("a seat has an incarnation and no node");
      if (seat.rank_base <= last_base) check->Fail("rank_base does not grow with the rank");
      last_base = seat.rank_base;
    }
    to->seats.push_back(std::move(seat));
  }
}

void DecodeNodes(FieldCheck* check, const v1::KeptJob& from, JobRecord* to) {
  check->Range("nodes", from.nodes_size(), 0, kNodesMax);
  for (const v1::KeptNode& wire : from.nodes()) {
    NodeRecord node;
    node.id = check->Id("nodes.id", wire.id());
    node.incarnation = wire.incarnation();
    if (wire.has_last_group_rank()) {
      node.last_group_rank = check->Int("last_group_rank", wire.last_group_rank(), 0, kNodesMax);
    }
    node.leaving = wire.leaving();
    node.draining = wire.draining();
    node.lost = wire.lost();
    node.retired.assign(wire.retired().begin(), wire.retired().end());
    if (!to->nodes.empty() && node.id <= to->nodes.back().id) {
      check->Fail("nodes are not in the order of their ids");
    }
    to->nodes.push_back(std::move(node));
  }
}

void DecodeFailures(FieldCheck* check, const v1::KeptJob& from, JobRecord* to) {
  check->Range("failures", from.failures_size(), 0, kNodesMax);
  for (const v1::KeptFailures& wire : from.failures()) {
    FailureRecord node{check->Id("failures.node_id", wire.node_id()), {}};
    if (wire.before_latest_ns().empty()) check->Fail("a node has failed no time");
    for (const int64_t before : wire.before_latest_ns()) {
      node.before_latest.push_back(check->Span("before_latest", before));
    }
    const auto& spans = node.before_latest;
    if (!std::is_sorted(spans.rbegin(), spans.rend())) check->Fail("failures are out of order");
    if (!to->failures.empty() && node.node_id <= to->failures.back().node_id) {
      check->Fail("failures are not in the order of their nodes' ids");
    }
    to->failures.push_back(std::move(node));
  }
  check->Range("lost", from.lost_size(), 0, kNodesMax);
  for (const std::string& id : from.lost()) {
    if (!to->lost.empty() && id <= to->lost.back()) check->Fail("lost nodes are out of order");
    to->lost.push_back(check->Text("lost", id, kIdBytesMax));
  }
}

DrainRecord DecodeDrain(FieldCheck* check, const v1::KeptDrain& from) {
  return {check->Text("drain.who", from.who(), kTextBytesMax), from.whole_job(),
          check->Span("drain.patience", from.patience_ns())};
}

Incident DecodeIncident(FieldCheck* check, const v1::KeptIncident& from) {
  Incident to;
  if (from.has_failure()) {
    v1::AgentMessage wire;
    *wire.mutable_worker_failed() = from.failure();
    to.AddFailure(check->Id("failed_node", from.failed_node()),
                  Take<WorkerFailed>(check, "incident", muster::Decode(wire)));
  }
  if (from.member_gone()) to.MemberGone();
  if (from.planned()) to.Planned();
  return to;
}

// What the machine relies on.
void CheckTogether(FieldCheck* check, const JobRecord& record) {
  using Stage = JobRecord::Stage;
  const bool is_closed = record.stage == Stage::kClosed;
  const bool has_seats = !record.seats.empty();
  const bool needs_seats = record.stage == Stage::kUnderWay || record.stage == Stage::kStopping;
  if (has_seats != needs_seats) check->Fail("seats and stage do not go together");
  if (record.drain && !needs_seats) check->Fail("drain and stage do not go together");
  if (is_closed != record.verdict.has_value()) check->Fail("verdict and stage differ");
  if (is_closed) return;
  if (record.generation < 1) check->Fail("it has no generation");
  if (!record.settings) return check->Fail("it has no settings");
  const std::string error = DescribeError(*record.settings);
  if (!error.empty()) check->Fail("settings: " + error);
  if (record.restarts_used > record.settings->max_restarts) check->Fail("too many restarts used");
}

JobRecord DecodeJobState(FieldCheck* check, const v1::KeptJob& from) {
  JobRecord to;
  to.job_id = check->Id("job_id", from.job_id());
  to.instance = from.instance();
  to.stage = DecodeStage(check, from.stage());
  if (from.has_settings()) {
    to.settings = Take<JobSettings>(check, "settings", muster::Decode(from.settings()));
  }
  to.generation = check->Generation(from.generation());
  to.highest_heard = check->Range("highest_heard", from.highest_heard(), 0, INT64_MAX - 1);
  to.restarts_used = check->Int("restarts_used", from.restarts_used(), 0, kCountMax);
  to.quick_failures = check->Int("quick_failures", from.quick_failures(), 0, kCountMax);
  to.last_size = check->Int("last_size", from.last_size(), 0, kNodesMax);
  DecodeSeats(check, from, &to);
  DecodeNodes(check, from, &to);
  DecodeFailures(check, from, &to);
  if (from.has_drain()) to.drain = DecodeDrain(check, from.drain());
  if (from.has_incident()) to.incident = DecodeIncident(check, from.incident());
  if (from.has_reason()) to.reason = DecodeReason(check, from.reason());
  if (from.has_last_leave()) {
    v1::AgentMessage wire;
    *wire.mutable_leaving() = from.last_leave();
    to.last_leave = Take<Leaving>(check, "last_leave", muster::Decode(wire));
  }
  if (from.has_verdict()) {
    v1::MasterMessage wire;
    *wire.mutable_verdict() = from.verdict();
    to.verdict = Take<Verdict>(check, "verdict", muster::Decode(wire));
  }
  to.incidents = DecodeIncidents(check, from);
  CheckTogether(check, to);
  return to;
}

absl::Status Parse(std::string_view bytes, google::protobuf::Message* wire) {
  if (!wire->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::DataLossError("it is not the state of a master");
  }
  const size_t with_unknown = wire->ByteSizeLong();
  wire->DiscardUnknownFields();
  if (wire->ByteSizeLong() == with_unknown) return absl::OkStatus();
  return absl::UnimplementedError("it has fields that only a newer version of musterd knows");
}

absl::Status DecodeValue(const StoredValue& value, MasterState* state) {
  if (value.key == kMasterKey) {
    v1::KeptMaster wire;
    const absl::Status status = Parse(value.value, &wire);
    state->master.forgotten_instance = wire.forgotten_instance();
    return status;
  }
  absl::StatusOr<JobRecord> record = DecodeJob(value.value);
  if (!record.ok()) return record.status();
  const std::string key = RecordKey(record->job_id, record->instance);
  if (key != value.key) return absl::DataLossError("it is the state of " + key);
  state->jobs.push_back(*std::move(record));
  return absl::OkStatus();
}

}  // namespace

std::string EncodeJob(const JobRecord& record) {
  v1::KeptJob wire;
  wire.set_job_id(WireText(record.job_id, kIdBytesMax));
  wire.set_instance(record.instance);
  wire.set_stage(static_cast<v1::JobStage>(record.stage));
  if (record.settings) *wire.mutable_settings() = muster::Encode(*record.settings);
  wire.set_generation(record.generation);
  wire.set_highest_heard(record.highest_heard);
  wire.set_restarts_used(record.restarts_used);
  wire.set_quick_failures(record.quick_failures);
  wire.set_last_size(record.last_size);
  EncodeSeats(record, &wire);
  EncodeNodes(record, &wire);
  EncodeFailures(record, &wire);
  EncodeIncidents(record.incidents, &wire);
  if (record.drain) EncodeDrain(*record.drain, wire.mutable_drain());
  if (record.incident != Incident()) EncodeIncident(record.incident, wire.mutable_incident());
  if (record.reason != Reason()) EncodeReason(record.reason, kTextBytesMax, wire.mutable_reason());
  if (record.last_leave) {
    *wire.mutable_last_leave() = muster::Encode(AgentMessage(*record.last_leave)).leaving();
  }
  if (record.verdict) {
    *wire.mutable_verdict() = muster::Encode(MasterMessage(*record.verdict)).verdict();
  }
  return wire.SerializeAsString();
}

std::string EncodeMaster(const MasterRecord& record) {
  v1::KeptMaster wire;
  wire.set_forgotten_instance(record.forgotten_instance);
  return wire.SerializeAsString();
}

absl::StatusOr<JobRecord> DecodeJob(std::string_view bytes) {
  v1::KeptJob wire;
  if (absl::Status status = Parse(bytes, &wire); !status.ok()) return status;
  FieldCheck check("job");
  JobRecord record = DecodeJobState(&check, wire);
  if (!check.status().ok()) return absl::DataLossError(check.status().message());
  return record;
}

absl::StatusOr<MasterState> DecodeState(const std::vector<StoredValue>& values) {
  MasterState state;
  for (const StoredValue& value : values) {
    const absl::Status status = DecodeValue(value, &state);
    if (!status.ok()) {
      return absl::Status(status.code(),
                          absl::StrCat("state of ", value.key, ": ", status.message()));
    }
  }
  return state;
}

}  // namespace muster
