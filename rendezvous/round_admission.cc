#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "rendezvous/admission.h"
#include "rendezvous/round_limits.h"
#include "rendezvous/round_machine.h"

// Who is let in, and what an agent that (re-)attaches brings along.

namespace muster {

namespace {

bool IsSameTable(const Assignment& a, const Assignment& b) {
  return a.world_size == b.world_size && a.master_addr == b.master_addr &&
         a.master_port == b.master_port && a.restart_count == b.restart_count;
}

// It was on its way while its process opened a later stream, which is here already.
bool IsOvertaken(const std::map<std::string, Node>& nodes, const Hello& hello) {
  const auto found = nodes.find(hello.node_id);
  return found != nodes.end() && found->second.hello.incarnation == hello.incarnation &&
         hello.attempt < found->second.hello.attempt;
}

}  // namespace

void RoundMachine::OnHello(const MessageArrived& event, const Hello& hello) {
  if (IsOvertaken(roster_.nodes(), hello)) return out_.Close(event.stream);
  Node* const bound = roster_.Of(event.stream);
  if (bound != nullptr &&
      (bound->id != hello.node_id || bound->hello.incarnation != hello.incarnation)) {
    Lose(*bound, {ReasonCode::kNodeLostStream, bound->id});
  }
  if (phase_ == RoundPhase::kClosed) {
    if (!settings_) {
      settings_ = hello.settings;
      Changed();
    }
    return out_.Send(Admit(event, hello).stream, *verdict_);
  }
  if (const auto refusal = RefusalOf(hello, IsBinding() ? &*settings_ : nullptr, roster_)) {
    out_.Send(event.stream, *refusal);
    return out_.Close(event.stream);
  }
  if (!IsBinding()) settings_ = hello.settings;
  Node& node = Admit(event, hello);
  Reconcile(node);
  GiveUpReplacedSeat(node);
  roster_.Touch(node);
}

// Until a generation has formed, the settings are those of the nodes that are here: one that left
// to come back with better ones is not held to its old ones.
bool RoundMachine::IsBinding() const {
  return settings_ && (generation_ > 0 || roster_.attached() > 0);
}

// Binds the stream to its node. A newer incarnation takes the node over: the older one is lost and
// never let in again, or two processes with one node id would replace each other for ever.
Node& RoundMachine::Admit(const MessageArrived& event, const Hello& hello) {
  Node& node = roster_.Make(hello.node_id);
  const bool is_known = !node.id.empty();
  const bool is_same = is_known && node.hello.incarnation == hello.incarnation;
  if (node.attached() && node.stream != event.stream) {
    if (!is_same) {
      out_.Send(node.stream, Replaced(hello.node_id));
    }
    out_.Close(node.stream);
  }
  if (!is_same) Renew(node, hello);
  if (phase_ == RoundPhase::kClosed && node.is_lost()) Changed();
  node.acknowledged = false;
  node.hello = hello;
  node.peer_address = event.peer_address;
  node.next_port = hello.next_port;
  node.waits = false;
  node.stale_generation = 0;
  roster_.Bind(node, event.stream);
  roster_.Heard(node, now_);
  node.heartbeat_due = now_ + hello.settings.keep_alive_interval;
  return node;
}

void RoundMachine::Renew(Node& node, const Hello& hello) {
  const bool was_attached = node.attached();
  roster_.Unbind(node);
  const Node old = std::exchange(node, Node{});
  if (phase_ == RoundPhase::kClosed || !old.id.empty()) Changed();
  node.counted = old.counted;
  node.id = hello.node_id;
  node.arrival = ++arrivals_;
  node.last_group_rank = old.last_group_rank;
  node.excluded = failures_.Excludes(node.id);
  node.retired = old.retired;
  if (!old.id.empty()) node.retired.push_back(old.hello.incarnation);
  if (node.retired.size() > kRetiredMax) node.retired.erase(node.retired.begin());
  const Reason replaced{ReasonCode::kNodeReplaced, node.id};
  const Seat* seat = phase_ == RoundPhase::kClosed ? nullptr : SeatOf(old);
  if (seat != nullptr && !seat->lost) {
    LoseSeat(old.group_rank, old.last_heard, replaced);
  } else {
    out_.Log(was_attached ? replaced : Reason{ReasonCode::kNodeJoined, node.id});
  }
}

// Brings what the agent says it runs and what the job is at together.
void RoundMachine::Reconcile(Node& node) {
  const Running& running = node.hello.running;
  const int64_t generation = running.assignment.generation;
  if (running.phase != WorkersPhase::kNone) {
    if (generation > last_generation()) {
      highest_heard_ = generation;
      Changed();
    }
    if (CanRecover(running)) Recover(running.assignment);
    ClaimSeat(node);
  }
  if (generation_ == 0 && node.hello.attached_before) gate_.AwaitMembers(now_);
  const bool is_current = running.phase != WorkersPhase::kNone && generation == generation_ &&
                          running.assignment.instance == instance_;
  const bool has_others = IsAlive(running.phase) && !is_current;
  if (const Seat* seat = SeatOf(node)) {
    // Workers of a number that this master never gave are in the way like those of its own.
    const Running others{WorkersPhase::kStopping, seat->assignment};
    ReconcileSeat(node, is_current ? running : has_others ? others : Running());
  }
  // It was let go, and may not have heard of it.
  if (node.draining && node.leaving && node.group_rank < 0) LetGo(node, "an operator");
  if (!has_others || phase_ == RoundPhase::kClosed) return;
  node.stale_generation = generation;
  Order(node, generation, {ReasonCode::kStaleWorkers, node.id, generation, generation_});
}

// `reported`: what the workers of the current generation do on this node; kNone when there are
// none.
void RoundMachine::ReconcileSeat(Node& node, const Running& reported) {
  const size_t rank = node.group_rank;
  const Seat& before = seats_[rank];
  if (before.lost && before.phase == WorkersPhase::kStopped) Changed();
  const bool was_awaited = before.awaited;
  if (was_awaited && reported.phase == WorkersPhase::kRunning) node.started = true;
  seats_.Update(rank, [](Seat& seat) {
    seat.lost = seat.awaited = false;
    seat.fenced_until = Time::min();
  });
  const Seat& seat = seats_[rank];
  if (seat.phase == WorkersPhase::kSucceeded) return;
  // Before the news that its workers have stopped, which may complete the incident.
  if (reported.failure && IsAlive(seat.phase)) TakeFailure(node, *reported.failure);
  switch (reported.phase) {
    case WorkersPhase::kSucceeded:
      MarkSucceeded(rank, reported.drained);
      return;
    case WorkersPhase::kRunning:
      if (drain_ && drain_->told_generation == generation_ && IsUnderWay()) SendDrain(node);
      if (phase_ != RoundPhase::kStopping) return;
      MarkStopping(rank);
      Order(node, generation_, reason_);
      return;
    case WorkersPhase::kStopping:
      MarkStopping(rank);
      break;
    case WorkersPhase::kStopped:
      SetPhase(rank, WorkersPhase::kStopped);
      break;
    case WorkersPhase::kNone:
      // The assignment has not reached it, or the generation ended before it could start.
      if (IsUnderWay()) return out_.Send(node.stream, seat.assignment);
      SetPhase(rank, WorkersPhase::kStopped);
      break;
  }
  TakeStop(node, reported.fenced);
}

bool RoundMachine::CanRecover(const Running& running) const {
  const Assignment& place = running.assignment;
  if (generation_ > 0 && phase_ != RoundPhase::kRecovering) return false;
  return place.generation > 0 && place.instance >= instance_ && place.group_world_size >= 1 &&
         place.group_world_size <= settings_->nodes_max;
}

// The master has no memory of this generation: takes over what it can and waits for the other
// members.
void RoundMachine::Recover(const Assignment& place) {
  const bool is_newer = generation_ == 0 || std::tie(place.instance, place.generation) >
                                                std::tie(instance_, generation_);
  const int restarts = std::min(place.restart_count, settings_->max_restarts);
  if (restarts > restarts_used_) {
    restarts_used_ = restarts;
    Changed();
  }
  if (!is_newer) return;
  for (auto& [id, node] : roster_.nodes()) {
    if (node.group_rank >= 0 && IsAlive(node.phase) && node.attached()) {
      node.stale_generation = generation_;
      Order(node, generation_, {ReasonCode::kStaleWorkers, id, generation_, place.generation});
    }
    node.group_rank = -1;
    node.phase = WorkersPhase::kNone;
    node.step.reset();
  }
  gate_.Begun();
  Enter(RoundPhase::kRecovering);
  instance_ = place.instance;
  generation_ = place.generation;
  const Time deadline = std::min(recovery_.deadline, now_ + kRecoveryGrace);
  recovery_ = Recovery();
  recovery_.deadline = deadline;
  Seat missing;
  missing.lost = missing.awaited = true;
  missing.fenced_until = settings_->fencing == Fencing::kStrict
                             ? std::max(recovery_.deadline, now_ + settings_->strict_fence())
                             : recovery_.deadline;
  std::vector<Seat> seats(place.group_world_size, missing);
  for (size_t rank = 0; rank < std::min(seats.size(), place.members.size()); ++rank) {
    seats[rank].node_id = place.members[rank];
    recovery_.ranks[place.members[rank]] = rank;
  }
  seats_.Reset(std::move(seats));
  Changed();
  for (auto& [id, node] : roster_.nodes()) GiveUpReplacedSeat(node);
}

void RoundMachine::ClaimSeat(Node& node) {
  const Running& running = node.hello.running;
  const Assignment& place = running.assignment;
  if (place.instance != instance_ || place.generation != generation_) return;
  if (node.group_rank >= 0) return;  // it has one already
  if (place.group_rank < 0 || static_cast<size_t>(place.group_rank) >= seats_.size()) return;
  const Seat& free = seats_[place.group_rank];
  if (!free.awaited || free.incarnation != 0) return;
  if (static_cast<size_t>(place.group_world_size) != seats_.size()) return;
  if (!recovery_.place) recovery_.place = place;
  if (!IsSameTable(*recovery_.place, place)) return;
  Changed();
  seats_.Update(place.group_rank, [&node](Seat& seat) {
    seat = Seat{node.id, node.hello.incarnation, node.hello.running.assignment};
  });
  node.group_rank = node.last_group_rank = place.group_rank;
  node.phase = WorkersPhase::kRunning;
  node.started = true;
  roster_.Touch(node);
}

// A fresh process tells by its name or fixed rank whose successor it is: nobody waits for that
// member any longer.
void RoundMachine::GiveUpReplacedSeat(Node& node) {
  if (!node.attached()) return;
  if (node.hello.running.phase != WorkersPhase::kNone) return;
  int rank = node.hello.fixed_group_rank;
  if (const auto named = recovery_.ranks.find(node.id); named != recovery_.ranks.end()) {
    rank = static_cast<int>(named->second);
  }
  if (rank < 0 || static_cast<size_t>(rank) >= seats_.size()) return;
  if (!seats_[rank].awaited) return;
  seats_.Update(rank, [&node](Seat& seat) {
    if (seat.incarnation == 0) seat.node_id = node.id;
  });
  node.last_group_rank = rank;
  roster_.Touch(node);
  LoseSeat(rank, now_, {ReasonCode::kNodeReplaced, node.id});
}

}  // namespace muster
