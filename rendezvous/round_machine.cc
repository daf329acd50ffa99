#include "rendezvous/round_machine.h"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "rendezvous/round_limits.h"

namespace muster {

namespace {

int64_t Milliseconds(Duration duration) {
  return std::chrono::floor<std::chrono::milliseconds>(duration).count();
}

}  // namespace

RoundMachine::RoundMachine(std::string job_id, uint64_t instance, uint64_t seed,
                           int64_t last_generation)
    : RoundState(std::move(job_id), instance, seed) {
  highest_heard_ = last_generation;
}

RoundEffects RoundMachine::Step(Time now, const RoundEvent& event) {
  now_ = now;
  std::visit([this](const auto& what) { On(what); }, event);
  Advance();
  if (settings_) {
    const WaitBoard::Rules rules{[this](const Node& node) { return WaitKindOf(node); },
                                 [this](WaitKind kind) { return HoldOf(kind); },
                                 settings_->join_timeout};
    waits_.Update(now, rules, &roster_, &out_);
  }
  return out_.Take();
}

void RoundMachine::On(const MessageArrived& event) {
  if (const auto* hello = std::get_if<Hello>(&event.message)) return OnHello(event, *hello);
  if (const auto* will = std::get_if<LastWill>(&event.message)) {
    return OnLastWill(event.stream, *will);
  }
  Node* node = roster_.Of(event.stream);
  // A stream that was closed a moment ago, or one that never said Hello: both have to start anew.
  if (node == nullptr) return out_.Close(event.stream);
  roster_.Heard(*node, now_);
  std::visit(
      [&](const auto& message) {
        using T = std::decay_t<decltype(message)>;
        if constexpr (!std::is_same_v<T, Hello> && !std::is_same_v<T, LastWill>) {
          Handle(*node, message);
          roster_.Touch(*node);
        }
      },
      event.message);
}

void RoundMachine::On(const StreamBroken& event) {
  Node* node = roster_.Of(event.stream);
  if (event.half_closed) out_.Close(event.stream);
  if (node == nullptr) return;
  node->acknowledged = phase_ == RoundPhase::kClosed && event.half_closed;
  const Seat* const seat = SeatOf(*node);
  const bool is_at_work = phase_ == RoundPhase::kRunning && seat != nullptr && IsAlive(seat->phase);
  if (!event.half_closed && now_ < mercy_until_ && is_at_work && !node->leaving) {
    return Miss(*node);
  }
  Lose(*node, {ReasonCode::kNodeLostStream, node->id});
}

void RoundMachine::On(const DeadlinePassed&) {
  if (!settings_) return;
  LoseSilent();
  LoseStuck();
  const bool is_mercy_over = phase_ == RoundPhase::kRunning && now_ >= mercy_until_;
  const bool is_recovery_over = phase_ == RoundPhase::kRecovering && now_ >= recovery_.deadline;
  if (seats_.missing() > 0 && (is_mercy_over || is_recovery_over)) {
    for (size_t rank = 0; rank < seats_.size(); ++rank) {
      if (!seats_[rank].lost || !IsAlive(seats_[rank].phase)) continue;
      const auto wait = std::chrono::floor<std::chrono::milliseconds>(kRecoveryGrace);
      incident_.MemberGone();
      if (is_mercy_over) lost_.insert(seats_[rank].node_id);
      EndGeneration({ReasonCode::kMemberMissing, "", static_cast<int64_t>(rank), wait.count()});
    }
  }
  if (phase_ == RoundPhase::kRunning && drain_ && now_ >= drain_->deadline) CutDrain();
  for (const std::string& id : failures_.Forgive(now_)) {
    if (Node* const node = roster_.Find(id)) {
      node->excluded = false;
      roster_.Touch(*node);
    }
  }
  if (phase_ == RoundPhase::kForming && now_ >= gate_.join_deadline()) {
    const Reason reason{ReasonCode::kJobFailedJoinTimeout, MissingNodes(), counts().candidates,
                        settings_->nodes_min, DurationText(settings_->join_timeout)};
    Close({false, kExitJoinTimeout, Sentence(reason)}, reason);
  }
}

// The master was away so long that its agents may have given it up: a stream that broke meanwhile
// says nothing of its node, which gets the time to come back with another one.
void RoundMachine::Miss(Node& node) {
  roster_.Unbind(node);
  seats_.Update(node.group_rank, [&](Seat& seat) {
    seat.lost = true;
    seat.fenced_until = FenceOf(seat, node.last_heard);
  });
}

void RoundMachine::LoseSilent() {
  const Duration barrier = settings_->exit_barrier_timeout;
  while (roster_.attached() > 0) {
    Node& node = *roster_.Of(roster_.most_silent());
    const Duration silence = now_ - node.last_heard;
    Reason reason{ReasonCode::kNodeLostSilence, node.id, Milliseconds(silence)};
    if (silence < settings_->lease()) {
      if (now_ < exit_barrier_deadline_) return;
      reason = {ReasonCode::kNotAcknowledged, node.id, Milliseconds(barrier)};
    }
    out_.Close(node.stream);
    Lose(node, reason);
  }
}

void RoundMachine::LoseStuck() {
  while (seats_.next_stop() <= now_) {
    const size_t rank = seats_.next_to_stop();
    seats_.Update(rank, [](Seat& seat) { seat.stop_by = kNever; });
    Node& node = *roster_.Find(seats_[rank].node_id);
    out_.Close(node.stream);
    Lose(node, {ReasonCode::kNodeStuck, node.id, Milliseconds(settings_->join_timeout)});
  }
}

void RoundMachine::On(const WokeUp& event) {
  roster_.Shift(event.missed, now_);
  seats_.Shift(event.missed);
  gate_.Shift(event.missed);
  // After the first heartbeat that is unanswered for a lease.
  if (settings_ && event.asleep >= settings_->lease() - settings_->keep_alive_interval) {
    mercy_until_ = now_ + kRecoveryGrace;
    out_.Log(
        {ReasonCode::kMasterWasAway, "", Milliseconds(event.asleep), Milliseconds(kRecoveryGrace)});
  }
  const auto shift = [&event](Time& deadline) {
    if (deadline != kNever) deadline += event.missed;
  };
  shift(recovery_.deadline);
  shift(exit_barrier_deadline_);
  if (drain_) shift(drain_->deadline);
}

void RoundMachine::On(const StopRequested& event) {
  const bool ends_already = incident_.is_fatal() || reason_.code == ReasonCode::kJobStopped;
  if (phase_ == RoundPhase::kClosed || ends_already) return;
  const Reason reason{ReasonCode::kJobStopped, event.who};
  if (!seats_.empty()) EndGeneration(reason);
  reason_ = reason;
  if (seats_.empty()) CloseStopped();
}

void RoundMachine::On(const LeftAlone& event) {
  if (phase_ == RoundPhase::kClosed || attached() > 0) return;
  const Reason reason{ReasonCode::kJobLeftAlone, "", 0, 0, DurationText(event.idle)};
  Close({false, kExitJoinTimeout, Sentence(reason)}, reason);
}

void RoundMachine::Advance() {
  if (!settings_) return;
  // Each pass either leaves the phase for a later one or changes nothing; a generation that forms
  // and ends within one step does not exist.
  for (RoundPhase before = RoundPhase::kClosed; before != phase_;) {
    CloseIfAbandoned();
    before = phase_;
    switch (phase_) {
      case RoundPhase::kForming:
        AdvanceForming();
        break;
      case RoundPhase::kRecovering:
        AdvanceRecovering();
        break;
      case RoundPhase::kRunning:
        AdvanceRunning();
        break;
      case RoundPhase::kStopping:
        AdvanceStopping();
        break;
      case RoundPhase::kClosed:
        break;
    }
  }
}

Time RoundMachine::NextDeadline() const {
  if (!settings_ || finished()) return kNever;
  Time next = std::min(exit_barrier_deadline_, waits_.NextDeadline());
  const auto consider = [&next](Time deadline) { next = std::min(next, deadline); };
  if (roster_.attached() > 0) consider(roster_.earliest_heard() + settings_->lease());
  if (phase_ == RoundPhase::kForming) {
    if (const auto hold = CurrentHold(now_)) consider(hold->until);
  }
  if (phase_ == RoundPhase::kRecovering) consider(recovery_.deadline);
  if (phase_ == RoundPhase::kRunning && drain_) consider(drain_->deadline);
  if (phase_ == RoundPhase::kRunning && seats_.missing() > 0) consider(mercy_until_);
  if (phase_ != RoundPhase::kClosed) consider(failures_.NextDeadline());
  if (phase_ == RoundPhase::kStopping) consider(seats_.NextDeadline());
  return next;
}

bool RoundMachine::WasPartOf(const Hello& hello) const {
  if (hello.running.phase != WorkersPhase::kNone &&
      hello.running.assignment.instance == instance_) {
    return true;
  }
  const auto found = nodes().find(hello.node_id);
  if (found == nodes().end()) return false;
  const Node& node = found->second;
  return node.hello.incarnation == hello.incarnation ||
         std::count(node.retired.begin(), node.retired.end(), hello.incarnation) > 0;
}

}  // namespace muster
