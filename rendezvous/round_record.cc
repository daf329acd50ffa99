#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/round_limits.h"
#include "rendezvous/round_machine.h"

// What of the machine outlives its master, and how it goes on from there.

namespace muster {
namespace {

JobRecord::Stage StageOf(RoundPhase phase) {
  switch (phase) {
    case RoundPhase::kForming:
      return JobRecord::Stage::kForming;
    case RoundPhase::kRecovering:
    case RoundPhase::kRunning:
      return JobRecord::Stage::kUnderWay;
    case RoundPhase::kStopping:
      return JobRecord::Stage::kStopping;
    case RoundPhase::kClosed:
      return JobRecord::Stage::kClosed;
  }
  return JobRecord::Stage::kForming;
}

RoundPhase PhaseOf(JobRecord::Stage stage) {
  switch (stage) {
    case JobRecord::Stage::kForming:
      return RoundPhase::kForming;
    case JobRecord::Stage::kUnderWay:
      return RoundPhase::kRecovering;
    case JobRecord::Stage::kStopping:
      return RoundPhase::kStopping;
    case JobRecord::Stage::kClosed:
      return RoundPhase::kClosed;
  }
  return RoundPhase::kForming;
}

// A member that is here says again that its workers have stopped.
WorkersPhase PhaseToKeep(const Seat& seat) {
  const bool is_kept =
      seat.phase == WorkersPhase::kSucceeded || (seat.phase == WorkersPhase::kStopped && seat.lost);
  return is_kept ? seat.phase : WorkersPhase::kRunning;
}

Seat SeatFrom(const JobRecord& record, size_t rank) {
  const SeatRecord& from = record.seats[rank];
  Seat seat{from.node_id, from.incarnation, {}, from.phase};
  seat.lost = true;
  seat.drained = from.drained;
  seat.awaited = IsAlive(seat.phase);
  if (seat.incarnation == 0) return seat;
  Assignment& place = seat.assignment;
  place.instance = record.instance;
  place.generation = record.generation;
  place.group_rank = static_cast<int>(rank);
  place.group_world_size = static_cast<int>(record.seats.size());
  place.rank_base = from.rank_base;
  place.world_size = record.world_size;
  place.role_rank_base = from.role_rank_base;
  place.role_world_size = from.role_world_size;
  place.master_addr = record.master_addr;
  place.master_port = record.master_port;
  place.restart_count = record.restart_count;
  return seat;
}

void RecordSeats(const SeatTable& seats, JobRecord* record) {
  for (const Seat& seat : seats.all()) {
    const Assignment& place = seat.assignment;
    record->seats.push_back({seat.node_id, seat.incarnation, place.rank_base, place.role_rank_base,
                             place.role_world_size, PhaseToKeep(seat), seat.drained});
    if (seat.incarnation == 0) continue;
    record->world_size = place.world_size;
    record->master_addr = place.master_addr;
    record->master_port = place.master_port;
    record->restart_count = place.restart_count;
  }
}

// The process that holds the place, unless a newer one has the name.
void SitDown(const Seat& seat, int rank, Roster* roster) {
  if (seat.incarnation == 0) return;
  Node& node = roster->Make(seat.node_id);
  if (node.id.empty()) {
    node.id = node.hello.node_id = seat.node_id;
    node.hello.incarnation = seat.incarnation;
  }
  if (node.hello.incarnation != seat.incarnation) return;
  node.group_rank = node.last_group_rank = rank;
  node.phase = seat.phase;
}

}  // namespace

std::optional<JobRecord> RoundMachine::Record() const {
  if (generation_ == 0 && phase_ != RoundPhase::kClosed) return std::nullopt;
  const bool is_closed = phase_ == RoundPhase::kClosed;
  JobRecord record;
  record.job_id = job_id_;
  record.instance = instance_;
  record.stage = StageOf(phase_);
  record.settings = settings_;
  record.generation = generation_;
  record.highest_heard = last_generation();
  record.restarts_used = restarts_used_;
  record.quick_failures = gate_.quick_failures();
  record.last_size = gate_.last_size();
  record.last_leave = last_leave_;
  record.verdict = verdict_;
  if (!is_closed) RecordSeats(seats_, &record);
  if (!is_closed) RecordIncident(&record);
  if (phase_ == RoundPhase::kStopping) record.reason = reason_;
  for (const auto& [id, node] : nodes()) {
    const bool is_seated = node.group_rank >= 0 && !is_closed;
    const bool is_special = node.draining || !node.retired.empty();
    if (is_seated && !node.leaving && !is_special) continue;  // as its seat says
    // The others would be strangers to a master that starts again, and are none the worse for it.
    if (is_closed || node.last_group_rank >= 0 || is_special) {
      record.nodes.push_back({id, node.hello.incarnation, node.last_group_rank, node.leaving,
                              node.draining, node.retired, is_closed && node.is_lost()});
    }
  }
  return record;
}

// What goes wrong, has gone wrong, or was asked for.
void RoundMachine::RecordIncident(JobRecord* record) const {
  record->incident = incident_;
  record->failures = failures_.Record();
  if (settings_->max_node_failures > 0) record->lost.assign(lost_.begin(), lost_.end());
  if (drain_) record->drain = DrainRecord{drain_->who, drain_->whole_job, drain_->patience};
}

void RoundMachine::RestoreIncident(const JobRecord& record, Time now) {
  incident_ = record.incident;
  failures_.Restore(record.failures, now, *settings_);
  lost_.insert(record.lost.begin(), record.lost.end());
  if (!record.drain) return;
  // Its members are told when all are back, and their time counts from there.
  drain_ = DrainOrder{record.drain->who, record.drain->whole_job, kNever, record.drain->patience};
}

RoundMachine::RoundMachine(const JobRecord& record, uint64_t seed, Time now)
    : RoundMachine(record.job_id, record.instance, seed) {
  now_ = formed_at_ = now;
  phase_ = PhaseOf(record.stage);
  generation_ = record.generation;
  highest_heard_ = record.highest_heard;
  restarts_used_ = record.restarts_used;
  settings_ = record.settings;
  verdict_ = record.verdict;
  reason_ = record.reason;
  last_leave_ = record.last_leave;
  gate_.Restore(record.quick_failures, record.last_size);
  for (const NodeRecord& from : record.nodes) {
    Node& node = roster_.Make(from.id);
    node.id = from.id;
    node.hello.node_id = from.id;
    node.hello.incarnation = from.incarnation;
    node.last_group_rank = from.last_group_rank;
    node.leaving = from.leaving;
    node.draining = from.draining;
    node.retired = from.retired;
    node.acknowledged = verdict_ && !from.lost;
  }
  if (phase_ == RoundPhase::kClosed) {
    roster_.TouchAll();
    exit_barrier_deadline_ = now + settings_.value_or(JobSettings()).exit_barrier_timeout;
    return;
  }
  RestoreIncident(record, now);
  if (phase_ == RoundPhase::kForming) gate_.Observe(0, now, *settings_);  // who comes too late
  recovery_.deadline = now + kRecoveryGrace;
  const bool is_strict = settings_->fencing == Fencing::kStrict;
  const Time fence = is_strict ? std::max(recovery_.deadline, now + settings_->strict_fence())
                               : recovery_.deadline;
  std::vector<Seat> seats;
  for (size_t rank = 0; rank < record.seats.size(); ++rank) {
    Seat seat = SeatFrom(record, rank);
    if (seat.awaited) seat.fenced_until = fence;
    if (seat.awaited && !seat.node_id.empty()) recovery_.ranks[seat.node_id] = rank;
    if (seat.incarnation != 0) recovery_.place = seat.assignment;
    seats.push_back(std::move(seat));
  }
  ListMembers(&seats);
  seats_.Reset(std::move(seats));
  for (size_t rank = 0; rank < seats_.size(); ++rank) {
    SitDown(seats_[rank], static_cast<int>(rank), &roster_);
  }
  for (auto& [id, node] : roster_.nodes()) node.excluded = failures_.Excludes(id);
  roster_.TouchAll();
}

}  // namespace muster
