#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "rendezvous/master_address.h"
#include "rendezvous/rank_assignment.h"
#include "rendezvous/round_limits.h"
#include "rendezvous/round_machine.h"

// How a generation begins.

namespace muster {

void RoundMachine::AdvanceForming() {
  gate_.Observe(Available(), now_, *settings_);
  if (const auto hold = CurrentHold(now_)) return SetReason(hold->reason);
  Form();
}

void RoundMachine::AdvanceRecovering() {
  const auto members = static_cast<int64_t>(seats_.size());
  if (seats_.missing() > 0) {
    const int64_t back = members - static_cast<int64_t>(seats_.lost());
    return SetReason({ReasonCode::kRecovering, "", back, members, MissingMembers()});
  }
  Enter(RoundPhase::kRunning);
  formed_at_ = now_;
  recovery_.deadline = kNever;
  gate_.Begun();
  SetReason({ReasonCode::kGenerationStarted, "", generation_, members});
}

void RoundMachine::AdvanceRunning() {
  if (drain_ || seats_.drained() > 0) {
    if (drain_) TellDrain();
    // It ends as it was asked to; what comes of that is decided with what else may have happened.
    if (seats_.AllSucceeded()) Enter(RoundPhase::kStopping);
    return;
  }
  if (seats_.AllSucceeded()) return Close({true, 0}, {ReasonCode::kJobSucceeded});
  if (settings_->join_policy == JoinPolicy::kNow) TakeIn();
}

// How many nodes could be members. Those that failed too often count only where there are not
// enough others.
int RoundMachine::Available() const {
  const int trusted = counts().candidates - counts().excluded;
  return std::max(trusted, std::min(counts().candidates, settings_->nodes_min));
}

bool RoundMachine::MayGrow() const {
  return settings_->usable(Available()) > static_cast<int>(seats_.size());
}

// Ends the generation for the sake of newcomers, unless it has begun to finish.
void RoundMachine::TakeIn() {
  if (counts().newcomers == counts().excluded_newcomers || seats_.succeeded() > 0) return;
  if (!MayGrow()) return;
  for (const auto& [id, node] : nodes()) {
    if (!node.is_candidate() || node.excluded || node.group_rank >= 0) continue;
    incident_.Planned();
    return EndGeneration({ReasonCode::kNewcomer, id});
  }
}

// Who did not fail too often first, then former members, then who waits longest.
std::vector<Node*> RoundMachine::ChooseMembers() {
  std::vector<Node*> members;
  for (auto& [id, node] : roster_.nodes()) {
    if (node.is_candidate()) members.push_back(&node);
  }
  std::sort(members.begin(), members.end(), [](const Node* a, const Node* b) {
    const bool a_is_new = a->last_group_rank < 0;
    const bool b_is_new = b->last_group_rank < 0;
    return std::tie(a->excluded, a_is_new, a->arrival) <
           std::tie(b->excluded, b_is_new, b->arrival);
  });
  members.resize(settings_->usable(Available()));
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
  roster_.EraseLost();
  for (auto& [id, node] : roster_.nodes()) {
    node.last_group_rank = -1;
    node.step.reset();
  }
  generation_ = last_generation() + 1;
  std::vector<Seat> seats(members.size());
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
    seats[grant.group_rank] = Seat{node.id, node.hello.incarnation, place};
    node.group_rank = node.last_group_rank = grant.group_rank;
    node.phase = WorkersPhase::kRunning;
    node.started = node.ready = false;
  }
  ListMembers(&seats);
  SetMaster(members, &seats);
  seats_.Reset(std::move(seats));
  Enter(RoundPhase::kRunning);
  recovery_.deadline = kNever;
  Changed();
  formed_at_ = now_;
  gate_.Begun();
  SetReason({ReasonCode::kGenerationStarted, "", generation_, static_cast<int64_t>(seats_.size())});
  for (const Seat& seat : seats_.all()) {
    out_.Send(roster_.Find(seat.node_id)->stream, seat.assignment);
  }
}

void RoundMachine::SetMaster(const std::vector<Node*>& members, std::vector<Seat>* seats) {
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
      out_.Log({ReasonCode::kAddressGuessed, node->id, 0, 0, choice.address + ": " + choice.guess});
    }
  }
  const Node& first = *roster_.Find(seats->front().node_id);
  const Hello& hello = first.hello;
  for (Seat& seat : *seats) {
    seat.assignment.master_addr =
        hello.fixed_master_addr.empty() ? first.address : hello.fixed_master_addr;
    seat.assignment.master_port =
        hello.fixed_master_port > 0 ? hello.fixed_master_port : first.next_port;
  }
}

}  // namespace muster
