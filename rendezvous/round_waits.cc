#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "rendezvous/round_limits.h"
#include "rendezvous/round_machine.h"

// What those who do not run wait for.

namespace muster {
namespace {

// How many of those that are missing are named.
constexpr size_t kNamesMax = 3;

// "b, c, e and 5 more": `names` are the first of `total`.
std::string Listed(const std::vector<std::string>& names, size_t total) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  if (total > names.size()) text += " and " + std::to_string(total - names.size()) + " more";
  return text;
}

}  // namespace

WaitKind RoundMachine::WaitKindOf(const Node& node) const {
  if (!node.attached() || node.leaving || phase_ == RoundPhase::kClosed) return WaitKind::kNothing;
  const bool is_member = node.group_rank >= 0;
  if (is_member && IsAlive(node.phase)) return WaitKind::kNothing;
  if (phase_ == RoundPhase::kStopping && is_member) return WaitKind::kOthers;
  if (phase_ != RoundPhase::kRunning) return WaitKind::kGeneration;
  if (is_member) return WaitKind::kVerdict;
  return node.excluded ? WaitKind::kPardon : WaitKind::kPlace;
}

std::optional<Hold> RoundMachine::CurrentHold(Time now) const {
  if (!settings_) return std::nullopt;
  switch (phase_) {
    case RoundPhase::kForming:
      // A master that starts again gives the former members time to find it: they keep their ranks.
      if (recovery_.deadline != kNever && now < recovery_.deadline &&
          counts().former_here < counts().former) {
        return Hold{
            {ReasonCode::kRecovering, "", counts().former_here, counts().former, MissingNodes()},
            recovery_.deadline};
      }
      return FormingHold(now);
    case RoundPhase::kRecovering:
      return Hold{reason_, recovery_.deadline};
    case RoundPhase::kRunning:
      if (seats_.missing() > 0) {
        const auto members = static_cast<int64_t>(seats_.size());
        const int64_t back = members - static_cast<int64_t>(seats_.missing());
        return Hold{{ReasonCode::kRecovering, "", back, members, MissingMembers()}, mercy_until_};
      }
      if (drain_) return Hold{DrainReason(), drain_->deadline};
      return std::nullopt;
    case RoundPhase::kStopping: {
      const auto ended = static_cast<int64_t>(seats_.ended(now));
      const auto places = static_cast<int64_t>(seats_.size());
      return Hold{{ReasonCode::kStopping, "", ended, places}, std::max(now, seats_.LastDeadline())};
    }
    case RoundPhase::kClosed:
      if (finished()) return std::nullopt;
      return Hold{reason_, exit_barrier_deadline_};
  }
  return std::nullopt;
}

std::optional<Hold> RoundMachine::FormingHold(Time now) const {
  std::optional<Hold> hold = gate_.HoldOf(Available(), now, *settings_);
  if (hold && hold->reason.code == ReasonCode::kWaitingForNodes) {
    hold->reason.detail = MissingNodes();
  }
  return hold;
}

// Who has a fixed rank or was a member before has a name; the others are strangers still.
std::string RoundMachine::MissingNodes() const {
  const bool has_ranks =
      counts().ranked > 0 && counts().unranked == 0 && settings_->nodes_min == settings_->nodes_max;
  std::vector<std::string> names;
  if (has_ranks) {
    const RankSet& held = roster_.held_ranks();
    for (const int rank : held.FirstMissing(settings_->nodes_max, kNamesMax)) {
      names.push_back("node rank " + std::to_string(rank));
    }
    return Listed(names, static_cast<size_t>(settings_->nodes_max) - held.size());
  }
  for (const std::string& id : roster_.absent()) {
    if (names.size() == kNamesMax) break;
    names.push_back(id);
  }
  return Listed(names, roster_.absent().size());
}

std::string RoundMachine::MissingMembers() const {
  std::vector<std::string> names;
  for (const int rank : seats_.missing_ranks().First(kNamesMax)) {
    const std::string& id = seats_[rank].node_id;
    names.push_back(id.empty() ? "group rank " + std::to_string(rank) : id);
  }
  return Listed(names, seats_.missing());
}

Hold RoundMachine::HoldOf(WaitKind kind) const {
  switch (kind) {
    case WaitKind::kVerdict:
      if (drain_) return {DrainReason(), drain_->deadline};
      return {{ReasonCode::kFinishing, "", static_cast<int64_t>(seats_.succeeded()),
               static_cast<int64_t>(seats_.size())}};
    case WaitKind::kPlace:
      return PlaceHold();
    case WaitKind::kPardon:
      return {
          {ReasonCode::kExcluded, "", settings_->max_node_failures,
           std::chrono::floor<std::chrono::milliseconds>(settings_->node_failure_window).count()},
          failures_.NextDeadline()};
    case WaitKind::kOthers: {
      Hold hold = CurrentHold(now_).value_or(Hold{reason_});
      hold.untold = kStopUntold;
      return hold;
    }
    case WaitKind::kGeneration:
    case WaitKind::kNothing:
      return CurrentHold(now_).value_or(Hold{reason_});
  }
  return {reason_};
}

Hold RoundMachine::PlaceHold() const {
  const auto members = static_cast<int64_t>(seats_.size());
  if (members >= settings_->nodes_max) return {{ReasonCode::kSpare, "", settings_->nodes_max}};
  if (!MayGrow()) return {{ReasonCode::kWaitingForUnit, "", members, settings_->node_unit}};
  const bool at_commit = settings_->join_policy == JoinPolicy::kCheckpoint;
  return {{at_commit ? ReasonCode::kWaitingForCommit : ReasonCode::kWaitingForRestart, "",
           generation_}};
}

}  // namespace muster
