#include "rendezvous/formation_gate.h"

#include <chrono>

#include "rendezvous/round_limits.h"

namespace muster {

void FormationGate::AfterFailure(bool is_quick, Time now, const JobSettings& settings) {
  backoff_wait_ = backoff_.AfterFailure(is_quick, settings.max_restart_delay);
  backoff_until_ = now + backoff_wait_;
}

void FormationGate::ExpectSuccessor(Time now, const JobSettings& settings) {
  last_call_due_ = true;
  last_call_deadline_ = now + settings.last_call;
}

void FormationGate::AwaitMembers(Time now) {
  if (members_until_ == Time::min()) members_until_ = now + kRecoveryGrace;
}

void FormationGate::Begun() {
  last_call_due_ = false;
  join_deadline_ = last_call_deadline_ = kNever;
}

void FormationGate::Shift(Duration missed) {
  for (Time* deadline : {&join_deadline_, &last_call_deadline_, &members_until_}) {
    if (*deadline != kNever && *deadline != Time::min()) *deadline += missed;
  }
}

void FormationGate::Observe(int here, Time now, const JobSettings& settings) {
  if (here < settings.nodes_min) {
    last_call_deadline_ = kNever;
    if (join_deadline_ == kNever) join_deadline_ = now + settings.join_timeout;
    return;
  }
  join_deadline_ = kNever;
  if (last_call_due_ && last_call_deadline_ == kNever) {
    last_call_deadline_ = now + settings.last_call;
  }
}

std::optional<Hold> FormationGate::HoldOf(int here, Time now, const JobSettings& settings) const {
  if (here < settings.nodes_min) {
    return Hold{{ReasonCode::kWaitingForNodes, "", here, settings.nodes_min}, join_deadline_};
  }
  if (now < backoff_until_) {
    const auto wait = std::chrono::floor<std::chrono::milliseconds>(backoff_wait_);
    return Hold{{ReasonCode::kBackingOff, "", backoff_.in_a_row(), wait.count()}, backoff_until_};
  }
  if (now < members_until_) return Hold{{ReasonCode::kRebuilding}, members_until_};
  const int usable = settings.usable(here);
  const bool all_are_in = usable >= settings.nodes_max || (last_size_ > 0 && usable >= last_size_);
  if (last_call_due_ && !all_are_in && now < last_call_deadline_) {
    return Hold{{ReasonCode::kLastCall, "", here, settings.nodes_max}, last_call_deadline_};
  }
  return std::nullopt;
}

}  // namespace muster
