#include <google/protobuf/unknown_field_set.h>

#include <algorithm>
#include <string>
#include <utility>

#include "rendezvous/field_check.h"
#include "rendezvous/message_codec.h"

namespace muster {
namespace {

constexpr int kSlotsMax = 65536;
constexpr int kNodesMax = 1 << 20;
constexpr int kWorkersMax = 1 << 30;
constexpr int kCountMax = 1 << 30;

WorkersPhase DecodeEnum(FieldCheck* check, v1::WorkersPhase value) {
  switch (value) {
    case v1::WORKERS_PHASE_NONE:
      return WorkersPhase::kNone;
    case v1::WORKERS_PHASE_RUNNING:
      return WorkersPhase::kRunning;
    case v1::WORKERS_PHASE_STOPPING:
      return WorkersPhase::kStopping;
    case v1::WORKERS_PHASE_STOPPED:
      return WorkersPhase::kStopped;
    case v1::WORKERS_PHASE_SUCCEEDED:
      return WorkersPhase::kSucceeded;
    default:
      check->UnknownEnum("running.phase", value);
      return WorkersPhase::kNone;
  }
}

Fencing DecodeEnum(FieldCheck* check, v1::Fencing value) {
  switch (value) {
    case v1::FENCING_TOKEN:
      return Fencing::kToken;
    case v1::FENCING_STRICT:
      return Fencing::kStrict;
    default:
      check->UnknownEnum("settings.fencing", value);
      return Fencing::kToken;
  }
}

JoinPolicy DecodeEnum(FieldCheck* check, v1::JoinPolicy value) {
  switch (value) {
    case v1::JOIN_POLICY_NOW:
      return JoinPolicy::kNow;
    case v1::JOIN_POLICY_CHECKPOINT:
      return JoinPolicy::kCheckpoint;
    case v1::JOIN_POLICY_RESTART:
      return JoinPolicy::kRestart;
    default:
      check->UnknownEnum("settings.join_policy", value);
      return JoinPolicy::kNow;
  }
}

LeaveCause DecodeEnum(FieldCheck* check, v1::LeaveCause value) {
  switch (value) {
    case v1::LEAVE_CAUSE_SIGNAL:
      return LeaveCause::kSignal;
    case v1::LEAVE_CAUSE_DRAINED:
      return LeaveCause::kDrained;
    case v1::LEAVE_CAUSE_OPERATOR:
      return LeaveCause::kOperator;
    default:
      check->UnknownEnum("cause", value);
      return LeaveCause::kSignal;
  }
}

JobSettings DecodeSettings(FieldCheck* check, const v1::JobSettings& from) {
  JobSettings to;
  to.nodes_min = check->Int("settings.nodes_min", from.nodes_min(), 1, kNodesMax);
  to.nodes_max = check->Int("settings.nodes_max", from.nodes_max(), 1, kNodesMax);
  to.max_restarts = check->Int("settings.max_restarts", from.max_restarts(), 0, kCountMax);
  to.last_call = check->Span("settings.last_call", from.last_call_ns());
  to.join_timeout = check->Span("settings.join_timeout", from.join_timeout_ns());
  to.keep_alive_interval =
      check->Span("settings.keep_alive_interval", from.keep_alive_interval_ns());
  to.keep_alive_max_attempt =
      check->Int("settings.keep_alive_max_attempt", from.keep_alive_max_attempt(), 1, kCountMax);
  if (to.keep_alive_interval > kLongestTimeout / std::max(to.keep_alive_max_attempt, 1)) {
    check->Fail("the settings' lease is longer than " + DurationText(kLongestTimeout));
  }
  to.master_loss_timeout =
      check->Span("settings.master_loss_timeout", from.master_loss_timeout_ns());
  to.exit_barrier_timeout =
      check->Span("settings.exit_barrier_timeout", from.exit_barrier_timeout_ns());
  to.fencing = DecodeEnum(check, from.fencing());
  to.join_policy = DecodeEnum(check, from.join_policy());
  to.max_start_failures =
      check->Int("settings.max_start_failures", from.max_start_failures(), 0, kCountMax);
  for (int code : from.fatal_exit_codes()) {
    to.fatal_exit_codes.Add(check->Int("settings.fatal_exit_codes", code, 1, 255));
  }
  to.stall_timeout = check->Span("settings.stall_timeout", from.stall_timeout_ns());
  to.max_restart_delay = check->Span("settings.max_restart_delay", from.max_restart_delay_ns());
  to.node_unit = std::max(check->Int("settings.node_unit", from.node_unit(), 0, kNodesMax), 1);
  to.max_node_failures =
      check->Int("settings.max_node_failures", from.max_node_failures(), 0, kCountMax);
  to.node_failure_window =
      check->Span("settings.node_failure_window", from.node_failure_window_ns());
  return to;
}

Assignment DecodeAssignment(FieldCheck* check, const v1::Assignment& from) {
  Assignment to;
  to.instance = from.instance();
  to.generation = check->Generation(from.generation());
  to.group_world_size = check->Int("group_world_size", from.group_world_size(), 1, kNodesMax);
  to.group_rank = check->Int("group_rank", from.group_rank(), 0, from.group_world_size() - 1);
  to.world_size = check->Int("world_size", from.world_size(), 1, kWorkersMax);
  to.rank_base = check->Int("rank_base", from.rank_base(), 0, from.world_size() - 1);
  to.role_world_size = check->Int("role_world_size", from.role_world_size(), 1, from.world_size());
  to.role_rank_base =
      check->Int("role_rank_base", from.role_rank_base(), 0, from.role_world_size() - 1);
  to.master_addr = check->Text("master_addr", from.master_addr(), kHostBytesMax);
  to.master_port = check->Port("master_port", from.master_port());
  to.restart_count = check->Int("restart_count", from.restart_count(), 0, kCountMax);
  check->Int("members", from.members_size(), 0, Assignment::kMembersListedMax);
  for (const std::string& member : from.members())
    to.members.push_back(check->Id("members", member));
  return to;
}

WorkerFailed DecodeKind(FieldCheck* check, const v1::WorkerFailed& from);

Running DecodeRunning(FieldCheck* check, const v1::Running& from) {
  Running to;
  to.phase = DecodeEnum(check, from.phase());
  if (to.phase == WorkersPhase::kNone) return to;
  to.assignment = DecodeAssignment(check, from.assignment());
  if (from.has_failure()) to.failure = DecodeKind(check, from.failure());
  to.drained = from.drained();
  to.fenced = from.fenced();
  return to;
}

Hello DecodeKind(FieldCheck* check, const v1::Hello& from) {
  Hello to;
  to.job_id = check->Id("job_id", from.job_id());
  to.settings = DecodeSettings(check, from.settings());
  to.node_id = check->Id("node_id", from.node_id());
  to.incarnation = from.incarnation();
  to.attempt = from.attempt();
  to.slots = check->Int("slots", from.slots(), 1, kSlotsMax);
  to.role = check->Text("role", from.role(), kIdBytesMax);
  if (from.has_fixed_group_rank()) {
    to.fixed_group_rank = check->Int("fixed_group_rank", from.fixed_group_rank(), 0, kNodesMax - 1);
  }
  to.local_addr = check->Text("local_addr", from.local_addr(), kHostBytesMax);
  check->Range("own_addresses", from.own_addresses_size(), 0, kOwnAddressesMax);
  for (const std::string& address : from.own_addresses()) {
    to.own_addresses.push_back(check->Text("own_addresses", address, kHostBytesMax));
  }
  to.dialled_host = check->Text("dialled_host", from.dialled_host(), kHostBytesMax);
  to.next_port = check->Port("next_port", from.next_port());
  to.fixed_master_addr = check->Text("fixed_master_addr", from.fixed_master_addr(), kHostBytesMax);
  to.fixed_master_port = check->Port("fixed_master_port", from.fixed_master_port());
  to.topology_key = check->Text("topology_key", from.topology_key(), kIdBytesMax);
  to.running = DecodeRunning(check, from.running());
  to.attached_before = from.attached_before();
  return to;
}

Heartbeat DecodeKind(FieldCheck* check, const v1::Heartbeat& from) {
  Heartbeat to{.sequence = from.sequence()};
  if (!from.has_progress()) return to;
  to.progress = Progress{
      .generation = check->Generation(from.progress().generation()),
      .step = check->Range("progress.step", from.progress().step(), 0, INT64_MAX),
      .since = check->Span("progress.since", from.progress().since_ns()),
  };
  return to;
}

WorkersStopped DecodeKind(FieldCheck* check, const v1::WorkersStopped& from) {
  return {.generation = check->Generation(from.generation()),
          .next_port = check->Port("next_port", from.next_port()),
          .fenced = from.fenced()};
}

FailureEvidence DecodeEvidence(FieldCheck* check, const v1::FailureEvidence& from) {
  FailureEvidence to;
  to.host = check->Text("evidence.host", from.host(), kHostBytesMax);
  to.unix_ms = check->Range("evidence.unix_ms", from.unix_ms(), 0, INT64_MAX);
  to.message = check->Text("evidence.message", from.message(), kTextBytesMax);
  to.hint = check->Text("evidence.hint", from.hint(), kTextBytesMax);
  to.stderr_tail = check->Text("evidence.stderr_tail", from.stderr_tail(), kTextBytesMax);
  to.log_path = check->Text("evidence.log_path", from.log_path(), kTextBytesMax);
  to.out_of_memory = from.out_of_memory();
  return to;
}

WorkerFailed DecodeKind(FieldCheck* check, const v1::WorkerFailed& from) {
  WorkerFailed to;
  to.generation = check->Generation(from.generation());
  to.local_rank = check->Int("local_rank", from.local_rank(), 0, kSlotsMax - 1);
  to.rank = check->Int("rank", from.rank(), 0, kWorkersMax - 1);
  to.pid = check->Int("pid", from.pid(), 0, INT32_MAX);
  const int code = check->Int("exit_code", from.exit_code(), 0, 255);
  const int signal = check->Int("signal", from.signal(), 0, 127);
  to.status =
      signal != 0 ? ExitStatus::Signalled(signal, from.core_dumped()) : ExitStatus::Exited(code);
  to.uptime = check->Span("uptime", from.uptime_ns());
  to.was_ready = from.was_ready();
  to.message = check->Text("message", from.message(), kTextBytesMax);
  to.can_restart = !from.cannot_restart();
  to.evidence = DecodeEvidence(check, from.evidence());
  return to;
}

WorkersSucceeded DecodeKind(FieldCheck* check, const v1::WorkersSucceeded& from) {
  return {.generation = check->Generation(from.generation()),
          .next_port = check->Port("next_port", from.next_port()),
          .drained = from.drained()};
}

Leaving DecodeKind(FieldCheck* check, const v1::Leaving& from) {
  return {.generation = check->Generation(from.generation()),
          .cause = DecodeEnum(check, from.cause()),
          .detail = check->Text("detail", from.detail(), kTextBytesMax)};
}

LastWill DecodeKind(FieldCheck* check, const v1::LastWill& from) {
  return {.job_id = check->Id("job_id", from.job_id()),
          .node_id = check->Id("node_id", from.node_id()),
          .incarnation = from.incarnation(),
          .generation = check->Generation(from.generation())};
}

StopWorkers DecodeKind(FieldCheck* check, const v1::StopWorkers& from) {
  return {.generation = check->Generation(from.generation()),
          .reason = check->Text("reason", from.reason(), kTextBytesMax)};
}

Wait DecodeKind(FieldCheck* check, const v1::Wait& from) {
  return {.reason = check->Text("reason", from.reason(), kTextBytesMax),
          .at_most = check->Span("at_most", from.at_most_ns())};
}

Drain DecodeKind(FieldCheck* check, const v1::Drain& from) {
  return {.generation = check->Generation(from.generation()),
          .reason = check->Text("reason", from.reason(), kTextBytesMax)};
}

Verdict DecodeKind(FieldCheck* check, const v1::Verdict& from) {
  Verdict to;
  to.succeeded = from.succeeded();
  to.exit_code = check->Int("exit_code", from.exit_code(), 0, 255);
  to.cause = check->Text("cause", from.cause(), kTextBytesMax);
  to.failed_node = check->Text("failed_node", from.failed_node(), kIdBytesMax);
  if (from.has_failed_rank()) {
    to.failed_rank = check->Int("failed_rank", from.failed_rank(), 0, kWorkersMax - 1);
  }
  if (from.has_failure()) to.failure = DecodeKind(check, from.failure());
  return to;
}

Rejected DecodeKind(FieldCheck* check, const v1::Rejected& from) {
  return {.exit_code = check->Int("exit_code", from.exit_code(), 0, 255),
          .reason = check->Text("reason", from.reason(), kTextBytesMax)};
}

Drained DecodeKind(FieldCheck* check, const v1::Drained& from) {
  return {.reason = check->Text("reason", from.reason(), kTextBytesMax)};
}

// Decodes one kind and turns the first unusable field into the status.
template <typename Message, typename Wire>
absl::StatusOr<Message> Checked(const char* name, const Wire& wire) {
  FieldCheck check(name);
  Message message = DecodeKind(&check, wire);
  if (!check.status().ok()) return check.status();
  return message;
}

template <typename Message, typename Wire>
absl::StatusOr<Message> GenerationOnly(const char* name, const Wire& wire) {
  FieldCheck check(name);
  check.Generation(wire.generation());
  if (!check.status().ok()) return check.status();
  return Message{.generation = wire.generation()};
}

absl::Status UnknownKind(const google::protobuf::Message& wire, const char* sender) {
  const auto& unknown = wire.GetReflection()->GetUnknownFields(wire);
  if (unknown.empty()) return absl::InvalidArgumentError("a message without content");
  return absl::UnimplementedError("message number " + std::to_string(unknown.field(0).number()) +
                                  " is unknown here: the " + sender + " is of a newer version");
}

}  // namespace

absl::StatusOr<JobSettings> Decode(const v1::JobSettings& wire) {
  FieldCheck check("JobSettings");
  JobSettings settings = DecodeSettings(&check, wire);
  if (!check.status().ok()) return check.status();
  return settings;
}

absl::StatusOr<AgentMessage> Decode(const v1::AgentMessage& wire) {
  using Kind = v1::AgentMessage;
  switch (wire.kind_case()) {
    case Kind::kHello:
      return Checked<Hello>("Hello", wire.hello());
    case Kind::kHeartbeat:
      return Checked<Heartbeat>("Heartbeat", wire.heartbeat());
    case Kind::kWorkersStarted:
      return GenerationOnly<WorkersStarted>("WorkersStarted", wire.workers_started());
    case Kind::kWorkersReady:
      return GenerationOnly<WorkersReady>("WorkersReady", wire.workers_ready());
    case Kind::kWorkersStopped:
      return Checked<WorkersStopped>("WorkersStopped", wire.workers_stopped());
    case Kind::kWorkerFailed:
      return Checked<WorkerFailed>("WorkerFailed", wire.worker_failed());
    case Kind::kWorkersSucceeded:
      return Checked<WorkersSucceeded>("WorkersSucceeded", wire.workers_succeeded());
    case Kind::kLeaving:
      return Checked<Leaving>("Leaving", wire.leaving());
    case Kind::kLastWill:
      return Checked<LastWill>("LastWill", wire.last_will());
    case Kind::kCommitPoint:
      return GenerationOnly<CommitPoint>("CommitPoint", wire.commit_point());
    case Kind::KIND_NOT_SET:
      break;
  }
  return UnknownKind(wire, "agent");
}

absl::StatusOr<MasterMessage> Decode(const v1::MasterMessage& wire) {
  using Kind = v1::MasterMessage;
  switch (wire.kind_case()) {
    case Kind::kHeartbeatAck:
      return HeartbeatAck{.sequence = wire.heartbeat_ack().sequence()};
    case Kind::kAssignment: {
      FieldCheck check("Assignment");
      Assignment assignment = DecodeAssignment(&check, wire.assignment());
      if (!check.status().ok()) return check.status();
      return assignment;
    }
    case Kind::kStopWorkers:
      return Checked<StopWorkers>("StopWorkers", wire.stop_workers());
    case Kind::kWait:
      return Checked<Wait>("Wait", wire.wait());
    case Kind::kDrain:
      return Checked<Drain>("Drain", wire.drain());
    case Kind::kVerdict:
      return Checked<Verdict>("Verdict", wire.verdict());
    case Kind::kRejected:
      return Checked<Rejected>("Rejected", wire.rejected());
    case Kind::kDrained:
      return Checked<Drained>("Drained", wire.drained());
    case Kind::KIND_NOT_SET:
      break;
  }
  return UnknownKind(wire, "master");
}

}  // namespace muster
