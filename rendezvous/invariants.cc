#include "rendezvous/invariants.h"

#include <algorithm>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace muster {
namespace {

std::string Text(int64_t number) { return std::to_string(number); }

std::string CheckHistory(const RoundSnapshot& before, const RoundMachine& machine) {
  if (machine.generation() < before.generation && machine.instance() == before.instance) {
    return "generation fell from " + Text(before.generation) + " to " + Text(machine.generation());
  }
  if (machine.instance() < before.instance) return "the instance fell";
  if (machine.restarts_used() < before.restarts_used) return "the restarts used fell";
  if (machine.settings() && machine.restarts_used() > machine.settings()->max_restarts) {
    return "restarts used " + Text(machine.restarts_used()) + " of " +
           Text(machine.settings()->max_restarts);
  }
  if (before.phase == RoundPhase::kClosed && machine.phase() != RoundPhase::kClosed) {
    return "a closed job reopened";
  }
  if (before.verdict && machine.verdict() != before.verdict) return "the verdict changed";
  if (machine.verdict().has_value() != (machine.phase() == RoundPhase::kClosed)) {
    return "closed and verdict do not go together";
  }
  return "";
}

// Places of a recovering master are filled one by one; everywhere else the table is complete.
std::string CheckTable(const RoundMachine& machine) {
  const std::vector<Seat>& seats = machine.seats();
  int rank_base = 0;
  for (size_t rank = 0; rank < seats.size(); ++rank) {
    const Seat& seat = seats[rank];
    if (seat.node_id.empty() || seat.incarnation == 0) {
      if (!seat.lost) return "group rank " + Text(rank) + " is nobody's and not lost";
      continue;
    }
    const Assignment& place = seat.assignment;
    const Assignment& first = seats.front().assignment;
    if (place.group_rank != static_cast<int>(rank)) return "a gap at group rank " + Text(rank);
    if (place.group_world_size != static_cast<int>(seats.size())) return "a wrong number of nodes";
    if (place.generation != machine.generation()) return "a place of another generation";
    if (place.instance != machine.instance()) return "a place of another instance";
    if (place.role_rank_base > place.rank_base || place.role_world_size > place.world_size) {
      return "role ranks beyond the global ranks of group rank " + Text(rank);
    }
    if (seats.front().incarnation == 0) continue;
    if (rank > 0 && place.rank_base <= rank_base) return "ranks do not count on at " + Text(rank);
    if (rank == 0 && place.rank_base != 0) return "rank 0 is missing";
    rank_base = place.rank_base;
    if (place.world_size != first.world_size || place.master_addr != first.master_addr ||
        place.master_port != first.master_port || place.restart_count != first.restart_count) {
      return "members know different tables";
    }
  }
  return "";
}

std::string CheckNodes(const RoundMachine& machine) {
  std::set<int> ranks;
  std::set<StreamId> streams;
  for (const auto& [id, node] : machine.nodes()) {
    if (node.id != id) return "node " + id + " calls itself " + node.id;
    if (node.attached() && !streams.insert(node.stream).second) return "one stream for two nodes";
    if (node.group_rank < 0) continue;
    if (!ranks.insert(node.group_rank).second) return "group rank taken twice";
    if (static_cast<size_t>(node.group_rank) >= machine.seats().size()) {
      return "node " + id + " has group rank " + Text(node.group_rank) + " of " +
             Text(machine.seats().size());
    }
    const Seat& seat = machine.seats()[node.group_rank];
    if (seat.node_id != id || seat.incarnation != node.hello.incarnation) {
      return "node " + id + " sits in the place of " + seat.node_id;
    }
    if (seat.phase != node.phase) return "node " + id + " and its place disagree";
    if (seat.lost == node.attached() && machine.phase() != RoundPhase::kClosed) {
      return "node " + id + " is both lost and attached";
    }
  }
  return "";
}

std::string CheckCounts(const RoundMachine& machine) {
  NodeCounts counts;
  for (const auto& [id, node] : machine.nodes()) counts += CountsOf(node);
  return counts == machine.counts() ? "" : "the nodes were miscounted";
}

std::string CheckWaits(const RoundMachine& machine, Time now) {
  if (machine.phase() == RoundPhase::kClosed) return "";
  for (const auto& [id, node] : machine.nodes()) {
    if (!node.attached() || node.leaving) continue;
    const bool runs = node.group_rank >= 0 && IsAlive(node.phase);
    if (!node.waits && !runs) return "node " + id + " waits and was not told why";
    if (node.waits && runs) return "node " + id + " runs and was told to wait";
    if (node.waits && (node.wait_until == kNever || node.wait_until <= now)) {
      return "node " + id + " waits without a deadline";
    }
  }
  return "";
}

// The event itself says that nothing of a lost place is alive any more.
bool Accounts(const RoundEvent& event, const Seat& seat) {
  const auto* arrived = std::get_if<MessageArrived>(&event);
  if (arrived == nullptr) return false;
  if (const auto* will = std::get_if<LastWill>(&arrived->message)) {
    return will->node_id == seat.node_id && will->incarnation == seat.incarnation;
  }
  const auto* hello = std::get_if<Hello>(&arrived->message);
  return hello != nullptr && !IsAlive(hello->running.phase) &&
         hello->incarnation == (seat.incarnation == 0 ? hello->incarnation : seat.incarnation);
}

// A member of before whose workers may still be alive, or "".
std::string Unfenced(const RoundSnapshot& before, Time now, const RoundEvent& event) {
  if (!before.settings || before.settings->fencing != Fencing::kStrict) return "";
  for (const Seat& old : before.seats) {
    if (old.lost && IsAlive(old.phase) && now < old.fenced_until && !Accounts(event, old)) {
      return old.node_id;
    }
  }
  return "";
}

// The next instance may begin at once.
std::string CheckClosed(const RoundSnapshot& before, const RoundMachine& machine, Time now,
                        const RoundEvent& event) {
  if (machine.phase() != RoundPhase::kClosed || before.phase == RoundPhase::kClosed) return "";
  const std::string unfenced = Unfenced(before, now, event);
  if (!unfenced.empty()) {
    return "the job ended before the fence of node " + unfenced + " had fallen";
  }
  const bool is_over = std::all_of(machine.seats().begin(), machine.seats().end(),
                                   [now](const Seat& seat) { return seat.HasEnded(now); });
  return is_over ? "" : "the job ended and workers of it are alive";
}

// New places only where nothing of the old ones is left.
std::string CheckAssigned(const RoundSnapshot& before, const RoundMachine& machine, Time now,
                          const RoundEvent& event) {
  if (machine.seats().empty() || machine.generation() == before.generation) return "";
  if (machine.phase() == RoundPhase::kRecovering || before.phase == RoundPhase::kRecovering)
    return "";
  const std::string unfenced = Unfenced(before, now, event);
  if (!unfenced.empty()) {
    return "generation " + Text(machine.generation()) + " began before the fence of node " +
           unfenced + " had fallen";
  }
  for (const Seat& seat : machine.seats()) {
    const auto found = machine.nodes().find(seat.node_id);
    if (found != machine.nodes().end() && found->second.stale_generation != 0) {
      return "node " + seat.node_id + " got a place while it runs an older generation";
    }
  }
  return "";
}

std::string CheckEffects(const RoundSnapshot& before, const RoundMachine& machine,
                         const RoundEvent& event, const RoundEffects& effects) {
  std::set<StreamId> known;
  std::set<StreamId> closed;
  std::set<StreamId> to_stop;  // an assignment that the same step takes back
  for (const auto& [stream, id] : before.streams) known.insert(stream);
  for (const auto& [id, node] : machine.nodes()) known.insert(node.stream);
  if (const auto* message = std::get_if<MessageArrived>(&event)) known.insert(message->stream);
  if (const auto* broken = std::get_if<StreamBroken>(&event)) {
    if (broken->half_closed) {
      known.insert(broken->stream);
    } else {
      known.erase(broken->stream);
    }
  }
  for (const RoundEffect& effect : effects) {
    if (const auto* close = std::get_if<CloseStreamTo>(&effect)) {
      if (known.count(close->stream) == 0) return "closes a stream that is gone";
      closed.insert(close->stream);
    }
    const auto* send = std::get_if<SendTo>(&effect);
    if (send == nullptr) continue;
    if (known.count(send->stream) == 0) return "sends to a stream that is gone";
    if (closed.count(send->stream) != 0) return "sends to a stream that it closed";
    const auto* stop = std::get_if<StopWorkers>(&send->message);
    if (stop != nullptr && stop->generation == machine.generation()) to_stop.erase(send->stream);
    const auto* place = std::get_if<Assignment>(&send->message);
    if (place == nullptr) continue;
    const bool is_under_way =
        machine.phase() == RoundPhase::kRunning || machine.phase() == RoundPhase::kRecovering;
    if (place->generation != machine.generation()) return "assigns what is not current";
    if (!is_under_way) to_stop.insert(send->stream);
  }
  return to_stop.empty() ? "" : "assigns what is not current";
}

std::string CheckDeadline(const RoundMachine& machine, Time now, const RoundEvent& event) {
  const Time next = machine.NextDeadline();
  const bool is_attended = std::any_of(machine.nodes().begin(), machine.nodes().end(),
                                       [](const auto& entry) { return entry.second.attached(); });
  if (is_attended && next == kNever) return "agents are here and no deadline is set";
  if (!machine.finished() && machine.settings() && next == kNever) return "the job waits for ever";
  if (std::holds_alternative<DeadlinePassed>(event) && next <= now) {
    return "the deadline that has passed is still the next one";
  }
  return "";
}

}  // namespace

RoundSnapshot RoundSnapshot::Of(const RoundMachine& machine) {
  RoundSnapshot snapshot;
  snapshot.phase = machine.phase();
  snapshot.instance = machine.instance();
  snapshot.generation = machine.generation();
  snapshot.restarts_used = machine.restarts_used();
  snapshot.settings = machine.settings();
  snapshot.verdict = machine.verdict();
  snapshot.seats = machine.seats();
  for (const auto& [id, node] : machine.nodes()) {
    if (node.attached()) snapshot.streams[node.stream] = id;
  }
  return snapshot;
}

std::string CheckInvariants(const RoundSnapshot& before, const RoundMachine& machine, Time now,
                            const RoundEvent& event, const RoundEffects& effects) {
  for (const std::string& broken :
       {CheckHistory(before, machine), CheckTable(machine), CheckNodes(machine),
        CheckCounts(machine), CheckWaits(machine, now), CheckClosed(before, machine, now, event),
        CheckAssigned(before, machine, now, event), CheckEffects(before, machine, event, effects),
        CheckDeadline(machine, now, event)}) {
    if (!broken.empty()) return broken;
  }
  return "";
}

}  // namespace muster
