#include <algorithm>
#include <chrono>

#include "rendezvous/round_limits.h"
#include "rendezvous/round_machine.h"

// What those who do not run wait for.

namespace muster {

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
        return Hold{{ReasonCode::kRecovering, "", counts().former_here, counts().former},
                    recovery_.deadline};
      }
      return gate_.HoldOf(Available(), now, *settings_);
    case RoundPhase::kRecovering:
      return Hold{reason_, recovery_.deadline};
    case RoundPhase::kRunning:
      if (seats_.missing() > 0) {
        const auto members = static_cast<int64_t>(seats_.size());
        const int64_t back = members - static_cast<int64_t>(seats_.missing());
        return Hold{{ReasonCode::kRecovering, "", back, members}, mercy_until_};
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
