#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/master_address.h"
#include "rendezvous/rank_assignment.h"
#include "rendezvous/round_limits.h"
#include "rendezvous/round_machine.h"

// How a generation begins, and what those who wait for it are told.

namespace muster {
namespace {

// Of the generation before: how many are here, and how many there are.
std::pair<int, int> CountFormer(const std::map<std::string, Node>& nodes) {
  int back = 0;
  int former = 0;
  for (const auto& [id, node] : nodes) {
    if (node.last_group_rank < 0 || node.leaving) continue;
    ++former;
    if (node.attached()) ++back;
  }
  return {back, former};
}

}  // namespace

void RoundMachine::AdvanceForming() {
  gate_.Observe(CandidateCount(nodes_), now_, *settings_);
  if (const auto hold = CurrentHold(now_)) return SetReason(hold->reason);
  Form();
}

void RoundMachine::AdvanceRecovering() {
  for (const Seat& seat : seats_) {
    if (seat.lost && seat.phase != WorkersPhase::kSucceeded) {
      const auto back = std::count_if(seats_.begin(), seats_.end(),
                                      [](const Seat& other) { return !other.lost; });
      return SetReason({ReasonCode::kRecovering, "", back, static_cast<int64_t>(seats_.size())});
    }
  }
  phase_ = RoundPhase::kRunning;
  formed_at_ = now_;
  recovery_deadline_ = kNever;
  gate_.Begun();
  SetReason({ReasonCode::kGenerationStarted, "", generation_, static_cast<int64_t>(seats_.size())});
}

void RoundMachine::AdvanceRunning() {
  if (std::all_of(seats_.begin(), seats_.end(), HasSucceeded))
    return Close({true, 0}, {ReasonCode::kJobSucceeded});
  // A generation that has begun to finish is not ended for the sake of more nodes.
  if (settings_->join_policy != JoinPolicy::kNow ||
      seats_.size() >= static_cast<size_t>(settings_->nodes_max) ||
      std::any_of(seats_.begin(), seats_.end(), HasSucceeded)) {
    return;
  }
  for (const auto& [id, node] : nodes_) {
    if (!node.is_candidate() || node.group_rank >= 0) continue;
    incident_.Planned();
    return EndGeneration({ReasonCode::kNewcomer, id});
  }
}

// Former members first, then who waits longest.
std::vector<Node*> RoundMachine::ChooseMembers() {
  std::vector<Node*> members;
  for (auto& [id, node] : nodes_) {
    if (node.is_candidate()) members.push_back(&node);
  }
  std::sort(members.begin(), members.end(), [](const Node* a, const Node* b) {
    const bool a_is_new = a->last_group_rank < 0;
    const bool b_is_new = b->last_group_rank < 0;
    return a_is_new != b_is_new ? b_is_new : a->arrival < b->arrival;
  });
  if (members.size() > static_cast<size_t>(settings_->nodes_max)) {
    members.resize(settings_->nodes_max);
  }
  return members;
}

void RoundMachine::Form() {
  std::vector<Node*> members = ChooseMembers();
  std::vector<RankRequest> requests;
  for (const Node* node : members) {
    requests.push_back({node->id, node->hello.topology_key, node->hello.role, node->hello.slots,
                        node->hello.fixed_group_rank, node->last_group_rank});
  }
  const RankTable table = AssignRanks(requests);
  std::erase_if(nodes_, [](const auto& entry) { return !entry.second.attached(); });
  for (auto& [id, node] : nodes_) node.last_group_rank = -1;
  generation_ = std::max(generation_, highest_heard_) + 1;
  recovery_deadline_ = kNever;
  Changed();
  seats_.assign(members.size(), Seat{});
  for (size_t i = 0; i < members.size(); ++i) {
    Node& node = *members[i];
    const RankGrant& grant = table.grants[i];
    Assignment place;
    place.instance = instance_;
    place.generation = generation_;
    place.group_rank = grant.group_rank;
    place.group_world_size = static_cast<int>(members.size());
    place.rank_base = grant.rank_base;
    place.world_size = table.world_size;
    place.role_rank_base = grant.role_rank_base;
    place.role_world_size = grant.role_world_size;
    place.restart_count = restarts_used_;
    seats_[grant.group_rank] = Seat{node.id, node.hello.incarnation, place};
    node.group_rank = node.last_group_rank = grant.group_rank;
    node.phase = WorkersPhase::kRunning;
    node.started = node.ready = false;
  }
  ListMembers(&seats_);
  SetMaster(members);
  phase_ = RoundPhase::kRunning;
  formed_at_ = now_;
  gate_.Begun();
  SetReason({ReasonCode::kGenerationStarted, "", generation_, static_cast<int64_t>(seats_.size())});
  for (const Seat& seat : seats_) Send(nodes_.at(seat.node_id).stream, seat.assignment);
}

void RoundMachine::SetMaster(const std::vector<Node*>& members) {
  std::string masters_host;
  for (const Node* node : members) {
    if (!IsLoopback(node->peer_address) && masters_host.empty()) {
      masters_host = node->hello.dialled_host;
    }
  }
  const bool is_single = settings_->nodes_max == 1;
  for (Node* node : members) {
    const AddressChoice choice = ReachableAddress(node->hello, node->peer_address, masters_host);
    node->address = is_single ? "127.0.0.1" : choice.address;
    const bool is_used = node->group_rank == 0 && node->hello.fixed_master_addr.empty();
    if (!choice.guess.empty() && !is_single && is_used) {
      Log({ReasonCode::kAddressGuessed, node->id, 0, 0, choice.address + ": " + choice.guess});
    }
  }
  const Node& first = nodes_.at(seats_.front().node_id);
  const Hello& hello = first.hello;
  for (Seat& seat : seats_) {
    seat.assignment.master_addr =
        hello.fixed_master_addr.empty() ? first.address : hello.fixed_master_addr;
    seat.assignment.master_port =
        hello.fixed_master_port > 0 ? hello.fixed_master_port : first.next_port;
  }
}

std::optional<Hold> RoundMachine::HoldOf(const Node& node,
                                         const std::optional<Hold>& general) const {
  if (!node.attached() || node.leaving) return std::nullopt;
  const bool is_member = node.group_rank >= 0;
  if (is_member && IsAlive(node.phase)) return std::nullopt;
  switch (phase_) {
    case RoundPhase::kForming:
    case RoundPhase::kRecovering:
    case RoundPhase::kStopping:
      return general;
    case RoundPhase::kRunning: {
      const int64_t places = settings_->nodes_max;
      const auto members = static_cast<int64_t>(seats_.size());
      if (is_member) {
        const auto done = std::count_if(seats_.begin(), seats_.end(), HasSucceeded);
        return Hold{{ReasonCode::kFinishing, "", done, members}};
      }
      if (members < places) {
        return Hold{{ReasonCode::kWaitingForRestart, "", generation_}};
      }
      return Hold{{ReasonCode::kSpare, "", places}};
    }
    case RoundPhase::kClosed:
      return std::nullopt;
  }
  return std::nullopt;
}

std::optional<Hold> RoundMachine::CurrentHold(Time now) const {
  if (!settings_) return std::nullopt;
  switch (phase_) {
    case RoundPhase::kForming:
      // A master that starts again gives the former members time to find it: they keep their ranks.
      if (recovery_deadline_ != kNever && now < recovery_deadline_) {
        const auto [back, former] = CountFormer(nodes_);
        if (back < former) {
          return Hold{{ReasonCode::kRecovering, "", back, former}, recovery_deadline_};
        }
      }
      return gate_.HoldOf(CandidateCount(nodes_), now, *settings_);
    case RoundPhase::kRecovering:
      return Hold{reason_, recovery_deadline_};
    case RoundPhase::kRunning:
      return std::nullopt;
    case RoundPhase::kStopping:
      return StoppingHold(now);
    case RoundPhase::kClosed:
      if (finished()) return std::nullopt;
      return Hold{reason_, exit_barrier_deadline_};
  }
  return std::nullopt;
}

void RoundMachine::UpdateWaits() {
  if (!settings_) return;
  const std::optional<Hold> general = CurrentHold(now_);
  for (auto& [id, node] : nodes_) {
    const auto hold = HoldOf(node, general);
    if (!hold) {
      node.waits = false;
      continue;
    }
    const bool is_other = !node.waits || hold->reason.code != node.wait_reason.code;
    const bool has_changed = is_other || hold->reason != node.wait_reason;
    const Time spaced = node.wait_sent + kWaitSpacing;
    if (is_other || now_ >= node.wait_until || (has_changed && now_ >= spaced)) {
      // Where nobody can say how long, the node is told again before it could doubt.
      const Time until = hold->until == kNever ? now_ + settings_->join_timeout : hold->until;
      node.waits = true;
      node.wait_reason = hold->reason;
      node.wait_sent = now_;
      node.wait_until = node.wait_next = std::max(until, now_ + kWaitSpacing);
      Send(node.stream, Wait{Sentence(hold->reason), std::max(until - now_, Duration::zero())});
    } else {
      node.wait_next = has_changed ? std::min(spaced, node.wait_until) : node.wait_until;
    }
  }
}

}  // namespace muster
