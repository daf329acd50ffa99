#include "rendezvous/round_machine.h"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "rendezvous/round_limits.h"

namespace muster {

RoundMachine::RoundMachine(std::string job_id, uint64_t instance, uint64_t seed)
    : job_id_(std::move(job_id)), instance_(instance), gate_(seed) {}

RoundEffects RoundMachine::Step(Time now, const RoundEvent& event) {
  now_ = now;
  std::visit([this](const auto& what) { On(what); }, event);
  Advance();
  UpdateWaits();
  return std::exchange(effects_, {});
}

void RoundMachine::On(const MessageArrived& event) {
  if (const auto* hello = std::get_if<Hello>(&event.message)) return OnHello(event, *hello);
  if (const auto* will = std::get_if<LastWill>(&event.message)) {
    return OnLastWill(event.stream, *will);
  }
  Node* node = NodeOf(event.stream);
  // A stream that was closed a moment ago, or one that never said Hello: both have to start anew.
  if (node == nullptr) return CloseStream(event.stream);
  node->last_heard = now_;
  std::visit(
      [&](const auto& message) {
        using T = std::decay_t<decltype(message)>;
        if constexpr (!std::is_same_v<T, Hello> && !std::is_same_v<T, LastWill>) {
          Handle(*node, message);
        }
      },
      event.message);
}

void RoundMachine::On(const StreamBroken& event) {
  Node* node = NodeOf(event.stream);
  if (event.half_closed) CloseStream(event.stream);
  if (node == nullptr) return;
  node->acknowledged = phase_ == RoundPhase::kClosed && event.half_closed;
  Lose(*node, {ReasonCode::kNodeLostStream, node->id});
}

void RoundMachine::On(const DeadlinePassed&) {
  if (!settings_) return;
  std::vector<std::pair<Node*, Reason>> gone;
  for (auto& [id, node] : nodes_) {
    if (!node.attached()) continue;
    const Seat* seat = SeatOf(node);
    if (now_ - node.last_heard >= settings_->lease()) {
      const auto silence = std::chrono::floor<std::chrono::milliseconds>(now_ - node.last_heard);
      gone.push_back({&node, {ReasonCode::kNodeLostSilence, id, silence.count()}});
    } else if (now_ >= exit_barrier_deadline_) {
      const auto limit =
          std::chrono::floor<std::chrono::milliseconds>(settings_->exit_barrier_timeout);
      gone.push_back({&node, {ReasonCode::kNotAcknowledged, id, limit.count()}});
    } else if (seat != nullptr && IsAlive(seat->phase) && now_ >= seat->stop_by) {
      const auto limit = std::chrono::floor<std::chrono::milliseconds>(settings_->join_timeout);
      gone.push_back({&node, {ReasonCode::kNodeStuck, id, limit.count()}});
    }
  }
  for (auto& [node, reason] : gone) {
    CloseStream(node->stream);
    Lose(*node, reason);
  }
  if (phase_ == RoundPhase::kRecovering && now_ >= recovery_deadline_) {
    for (size_t rank = 0; rank < seats_.size(); ++rank) {
      if (!seats_[rank].lost || !IsAlive(seats_[rank].phase)) continue;
      const auto wait = std::chrono::floor<std::chrono::milliseconds>(kRecoveryGrace);
      incident_.MemberGone();
      EndGeneration({ReasonCode::kMemberMissing, "", static_cast<int64_t>(rank), wait.count()});
    }
  }
  if (phase_ == RoundPhase::kForming && now_ >= gate_.join_deadline()) {
    const Reason reason{ReasonCode::kJobFailedJoinTimeout, "", CandidateCount(nodes_),
                        settings_->nodes_min, DurationText(settings_->join_timeout)};
    Close({false, kExitJoinTimeout, Sentence(reason)}, reason);
  }
}

void RoundMachine::On(const WokeUp& event) {
  for (auto& [id, node] : nodes_) {
    node.last_heard = std::min(now_, node.last_heard + event.missed);
  }
  for (Seat& seat : seats_) {
    for (Time* deadline : {&seat.stop_by, &seat.fenced_until}) {
      if (*deadline != kNever && *deadline != Time::min()) *deadline += event.missed;
    }
  }
  gate_.Shift(event.missed);
  for (Time* deadline : {&recovery_deadline_, &exit_barrier_deadline_}) {
    if (*deadline != kNever) *deadline += event.missed;
  }
}

void RoundMachine::On(const StopRequested& event) {
  if (phase_ == RoundPhase::kClosed) return;
  const Reason reason{ReasonCode::kJobStopped, event.who};
  Close({false, kExitStopped, Sentence(reason)}, reason);
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
  Time next = exit_barrier_deadline_;
  const auto consider = [&next](Time deadline) { next = std::min(next, deadline); };
  for (const auto& [id, node] : nodes_) {
    if (!node.attached()) continue;
    consider(node.last_heard + settings_->lease());
    if (node.waits) consider(node.wait_next);
  }
  if (phase_ == RoundPhase::kForming) {
    if (const auto hold = CurrentHold(now_)) consider(hold->until);
  }
  if (phase_ == RoundPhase::kRecovering) consider(recovery_deadline_);
  if (phase_ == RoundPhase::kStopping) {
    for (const Seat& seat : seats_) {
      if (!IsAlive(seat.phase)) continue;
      consider(seat.lost ? (seat.fenced_until > now_ ? seat.fenced_until : kNever) : seat.stop_by);
    }
  }
  return next;
}

bool RoundMachine::finished() const {
  return verdict_.has_value() && std::none_of(nodes_.begin(), nodes_.end(), [](const auto& entry) {
           return entry.second.attached();
         });
}

bool RoundMachine::WasPartOf(const Hello& hello) const {
  if (hello.running.phase != WorkersPhase::kNone &&
      hello.running.assignment.instance == instance_) {
    return true;
  }
  const auto found = nodes_.find(hello.node_id);
  if (found == nodes_.end()) return false;
  const Node& node = found->second;
  return node.hello.incarnation == hello.incarnation ||
         std::count(node.retired.begin(), node.retired.end(), hello.incarnation) > 0;
}

bool RoundMachine::IsUnderWay() const {
  return phase_ == RoundPhase::kRunning || phase_ == RoundPhase::kRecovering;
}

Node* RoundMachine::NodeOf(StreamId stream) {
  const auto found = streams_.find(stream);
  return found == streams_.end() ? nullptr : &nodes_.at(found->second);
}

Seat* RoundMachine::SeatOf(const Node& node) {
  if (node.group_rank < 0) return nullptr;
  return &seats_[node.group_rank];
}

void RoundMachine::Changed() {
  if (generation_ == 0 && phase_ != RoundPhase::kClosed) return;  // there is no record yet
  if (!effects_.empty() && std::holds_alternative<Persist>(effects_.front())) return;
  effects_.insert(effects_.begin(), Persist{});
}

void RoundMachine::SetPhase(Seat& seat, WorkersPhase phase) {
  if (phase == WorkersPhase::kSucceeded || (phase == WorkersPhase::kStopped && seat.lost)) {
    Changed();
  }
  seat.phase = phase;
  if (!IsAlive(phase)) seat.stop_by = kNever;
  const auto found = nodes_.find(seat.node_id);
  if (found != nodes_.end() && SeatOf(found->second) == &seat) found->second.phase = phase;
}

void RoundMachine::Order(Node& node, int64_t generation, const Reason& reason) {
  Send(node.stream, StopWorkers{generation, Sentence(reason)});
}

void RoundMachine::Send(StreamId stream, MasterMessage message) {
  effects_.push_back(SendTo{stream, std::move(message)});
}

void RoundMachine::CloseStream(StreamId stream) { effects_.push_back(CloseStreamTo{stream}); }

void RoundMachine::Log(const Reason& reason) { effects_.push_back(Decided{reason}); }

void RoundMachine::SetReason(const Reason& reason) {
  // Counting up is progress, not a decision.
  if (reason.code != reason_.code) Log(reason);
  reason_ = reason;
}

}  // namespace muster
