#include <algorithm>
#include <string>
#include <string_view>
#include <type_traits>

#include "rendezvous/message_codec.h"

namespace muster {
namespace {

// Length of the valid UTF-8 sequence at the start of `text`, 0 when there is none. Surrogates and
// overlong forms are refused as protobuf refuses them.
size_t Utf8Length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  if (first == 0xe0 && byte(1) < 0xa0) return 0;
  if (first == 0xed && byte(1) > 0x9f) return 0;
  if (first == 0xf0 && byte(1) < 0x90) return 0;
  if (first == 0xf4 && byte(1) > 0x8f) return 0;
  return length;
}

std::string Id(std::string_view text) { return WireText(text, kIdBytesMax); }
std::string Host(std::string_view text) { return WireText(text, kHostBytesMax); }
std::string Sentence(std::string_view text) { return WireText(text, kTextBytesMax); }

// The enums of both sides are declared in the same order; the decoder's switch keeps them honest.
template <typename Wire, typename Plain>
Wire Enum(Plain value) {
  return static_cast<Wire>(static_cast<int>(value));
}

void EncodeTo(const JobSettings& from, v1::JobSettings* to) {
  to->set_nodes_min(from.nodes_min);
  to->set_nodes_max(from.nodes_max);
  to->set_max_restarts(from.max_restarts);
  to->set_last_call_ns(from.last_call.count());
  to->set_join_timeout_ns(from.join_timeout.count());
  to->set_keep_alive_interval_ns(from.keep_alive_interval.count());
  to->set_keep_alive_max_attempt(from.keep_alive_max_attempt);
  to->set_master_loss_timeout_ns(from.master_loss_timeout.count());
  to->set_exit_barrier_timeout_ns(from.exit_barrier_timeout.count());
  to->set_fencing(Enum<v1::Fencing>(from.fencing));
  to->set_join_policy(Enum<v1::JoinPolicy>(from.join_policy));
  to->set_max_start_failures(from.max_start_failures);
  for (int code = 0; code < ExitCodeSet::kSize; ++code) {
    if (from.fatal_exit_codes.Contains(code)) to->add_fatal_exit_codes(code);
  }
  to->set_stall_timeout_ns(from.stall_timeout.count());
  to->set_max_restart_delay_ns(from.max_restart_delay.count());
  to->set_node_unit(from.node_unit);
  to->set_max_node_failures(from.max_node_failures);
  to->set_node_failure_window_ns(from.node_failure_window.count());
}

void EncodeTo(const Assignment& from, v1::Assignment* to) {
  to->set_instance(from.instance);
  to->set_generation(from.generation);
  to->set_group_rank(from.group_rank);
  to->set_group_world_size(from.group_world_size);
  to->set_rank_base(from.rank_base);
  to->set_world_size(from.world_size);
  to->set_role_rank_base(from.role_rank_base);
  to->set_role_world_size(from.role_world_size);
  to->set_master_addr(Host(from.master_addr));
  to->set_master_port(from.master_port);
  to->set_restart_count(from.restart_count);
  for (const std::string& member : from.members) to->add_members(Id(member));
}

void EncodeTo(const WorkerFailed& from, v1::WorkerFailed* to);

void EncodeKind(const Hello& from, v1::AgentMessage* wire) {
  v1::Hello* to = wire->mutable_hello();
  to->set_job_id(Id(from.job_id));
  EncodeTo(from.settings, to->mutable_settings());
  to->set_node_id(Id(from.node_id));
  to->set_incarnation(from.incarnation);
  to->set_attempt(from.attempt);
  to->set_slots(from.slots);
  to->set_role(Id(from.role));
  if (from.fixed_group_rank >= 0) to->set_fixed_group_rank(from.fixed_group_rank);
  to->set_local_addr(Host(from.local_addr));
  for (const std::string& address : from.own_addresses) {
    if (static_cast<size_t>(to->own_addresses_size()) == kOwnAddressesMax) break;
    to->add_own_addresses(Host(address));
  }
  to->set_dialled_host(Host(from.dialled_host));
  to->set_next_port(from.next_port);
  to->set_fixed_master_addr(Host(from.fixed_master_addr));
  to->set_fixed_master_port(from.fixed_master_port);
  to->set_topology_key(Id(from.topology_key));
  v1::Running* running = to->mutable_running();
  running->set_phase(Enum<v1::WorkersPhase>(from.running.phase));
  if (from.running.phase != WorkersPhase::kNone) {
    EncodeTo(from.running.assignment, running->mutable_assignment());
    if (from.running.failure) EncodeTo(*from.running.failure, running->mutable_failure());
    running->set_drained(from.running.drained);
    running->set_fenced(from.running.fenced);
  }
  to->set_attached_before(from.attached_before);
}

void EncodeKind(const Heartbeat& from, v1::AgentMessage* wire) {
  wire->mutable_heartbeat()->set_sequence(from.sequence);
  if (!from.progress) return;
  v1::Progress* to = wire->mutable_heartbeat()->mutable_progress();
  to->set_generation(from.progress->generation);
  to->set_step(from.progress->step);
  to->set_since_ns(from.progress->since.count());
}

void EncodeKind(const WorkersStarted& from, v1::AgentMessage* wire) {
  wire->mutable_workers_started()->set_generation(from.generation);
}

void EncodeKind(const WorkersReady& from, v1::AgentMessage* wire) {
  wire->mutable_workers_ready()->set_generation(from.generation);
}

void EncodeKind(const WorkersStopped& from, v1::AgentMessage* wire) {
  wire->mutable_workers_stopped()->set_generation(from.generation);
  wire->mutable_workers_stopped()->set_next_port(from.next_port);
  wire->mutable_workers_stopped()->set_fenced(from.fenced);
}

void EncodeTo(const FailureEvidence& from, v1::FailureEvidence* to) {
  to->set_host(Host(from.host));
  to->set_unix_ms(from.unix_ms);
  to->set_message(Sentence(from.message));
  to->set_hint(Sentence(from.hint));
  to->set_stderr_tail(Sentence(from.stderr_tail));
  to->set_log_path(Sentence(from.log_path));
  to->set_out_of_memory(from.out_of_memory);
}

void EncodeTo(const WorkerFailed& from, v1::WorkerFailed* to) {
  to->set_generation(from.generation);
  to->set_local_rank(from.local_rank);
  to->set_rank(from.rank);
  to->set_pid(from.pid);
  to->set_exit_code(from.status.code());
  to->set_signal(from.status.signal());
  to->set_core_dumped(from.status.core_dumped());
  to->set_uptime_ns(from.uptime.count());
  to->set_was_ready(from.was_ready);
  to->set_message(Sentence(from.message));
  to->set_cannot_restart(!from.can_restart);
  if (from.evidence != FailureEvidence()) EncodeTo(from.evidence, to->mutable_evidence());
}

void EncodeKind(const WorkerFailed& from, v1::AgentMessage* wire) {
  EncodeTo(from, wire->mutable_worker_failed());
}

void EncodeKind(const WorkersSucceeded& from, v1::AgentMessage* wire) {
  wire->mutable_workers_succeeded()->set_generation(from.generation);
  wire->mutable_workers_succeeded()->set_next_port(from.next_port);
  wire->mutable_workers_succeeded()->set_drained(from.drained);
}

void EncodeKind(const Leaving& from, v1::AgentMessage* wire) {
  wire->mutable_leaving()->set_generation(from.generation);
  wire->mutable_leaving()->set_cause(Enum<v1::LeaveCause>(from.cause));
  wire->mutable_leaving()->set_detail(Sentence(from.detail));
}

void EncodeKind(const LastWill& from, v1::AgentMessage* wire) {
  v1::LastWill* to = wire->mutable_last_will();
  to->set_job_id(Id(from.job_id));
  to->set_node_id(Id(from.node_id));
  to->set_incarnation(from.incarnation);
  to->set_generation(from.generation);
}

void EncodeKind(const CommitPoint& from, v1::AgentMessage* wire) {
  wire->mutable_commit_point()->set_generation(from.generation);
}

void EncodeKind(const HeartbeatAck& from, v1::MasterMessage* wire) {
  wire->mutable_heartbeat_ack()->set_sequence(from.sequence);
}

void EncodeKind(const Assignment& from, v1::MasterMessage* wire) {
  EncodeTo(from, wire->mutable_assignment());
}

void EncodeKind(const StopWorkers& from, v1::MasterMessage* wire) {
  wire->mutable_stop_workers()->set_generation(from.generation);
  wire->mutable_stop_workers()->set_reason(Sentence(from.reason));
}

void EncodeKind(const Wait& from, v1::MasterMessage* wire) {
  wire->mutable_wait()->set_reason(Sentence(from.reason));
  wire->mutable_wait()->set_at_most_ns(from.at_most.count());
}

void EncodeKind(const Drain& from, v1::MasterMessage* wire) {
  wire->mutable_drain()->set_generation(from.generation);
  wire->mutable_drain()->set_reason(Sentence(from.reason));
}

void EncodeKind(const Verdict& from, v1::MasterMessage* wire) {
  v1::Verdict* to = wire->mutable_verdict();
  to->set_succeeded(from.succeeded);
  to->set_exit_code(from.exit_code);
  to->set_cause(Sentence(from.cause));
  to->set_failed_node(Id(from.failed_node));
  if (from.failed_rank >= 0) to->set_failed_rank(from.failed_rank);
  if (from.failure) EncodeTo(*from.failure, to->mutable_failure());
}

void EncodeKind(const Rejected& from, v1::MasterMessage* wire) {
  wire->mutable_rejected()->set_exit_code(from.exit_code);
  wire->mutable_rejected()->set_reason(Sentence(from.reason));
}

void EncodeKind(const Drained& from, v1::MasterMessage* wire) {
  wire->mutable_drained()->set_reason(Sentence(from.reason));
}

}  // namespace

// A receiver refuses a whole message for one bad byte, and a worker may say anything.
std::string WireText(std::string_view text, size_t bytes_max) {
  std::string clean;
  clean.reserve(std::min(text.size(), bytes_max));
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    const std::string_view piece = length == 0 ? "?" : text.substr(0, length);
    if (clean.size() + piece.size() > bytes_max) break;
    clean += piece;
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return clean;
}

v1::JobSettings Encode(const JobSettings& settings) {
  v1::JobSettings wire;
  EncodeTo(settings, &wire);
  return wire;
}

v1::AgentMessage Encode(const AgentMessage& message) {
  v1::AgentMessage wire;
  std::visit([&wire](const auto& kind) { EncodeKind(kind, &wire); }, message);
  return wire;
}

v1::MasterMessage Encode(const MasterMessage& message) {
  v1::MasterMessage wire;
  std::visit([&wire](const auto& kind) { EncodeKind(kind, &wire); }, message);
  return wire;
}

}  // namespace muster
