#include "tests/sim/sim_agent.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "tests/sim/sim_text.h"

namespace muster::sim {
namespace {

using namespace std::chrono_literals;

constexpr int kExitNoMaster = 69;
constexpr int kExitBroken = 70;
// So many steps at one time are no busy loop yet: messages may have piled up.
constexpr int kStepsAtOnce = 500;

}  // namespace

SimAgent::SimAgent(SimWorld& world, SimNetwork& network, JobWork& work, const Scenario& scenario,
                   Options options, std::function<void()> on_warden_gone)
    : world_(world),
      network_(network),
      options_(std::move(options)),
      name_(hello().node_id + "#" + std::to_string(hello().incarnation)),
      machine_(options_.machine),
      warden_(
          world, work, scenario, options_.node,
          [this](SupervisorEvent event) { Deliver(std::move(event)); }, std::move(on_warden_gone)) {
}

// ── Its clock ────────────────────────────────────────────────────────────────────────────────────

Time SimAgent::LocalTime() const { return options_.clock.Local(world_.queue.now()); }

void SimAgent::ArmTimer() {
  const Time deadline = is_alive_ ? machine_.NextDeadline() : kNever;
  if (deadline == armed_for_) return;
  armed_for_ = deadline;
  ++timer_;
  if (deadline == kNever) return;
  world_.queue.At(options_.clock.World(deadline), [this, timer = timer_] {
    if (timer == timer_) TimerFired();
  });
}

void SimAgent::TimerFired() {
  armed_for_ = kNever;
  if (!is_alive_ || is_frozen_) return;
  if (LocalTime() >= machine_.NextDeadline()) Dispatch(TimeCame{});
  ArmTimer();
}

// ── What comes in ────────────────────────────────────────────────────────────────────────────────

void SimAgent::Deliver(SupervisorEvent event, StreamId stream) {
  if (!is_alive_) return;
  if (is_frozen_ || !inbox_.empty()) {
    inbox_.push_back({stream, std::move(event)});
    return;
  }
  Handle({stream, std::move(event)});
}

void SimAgent::Handle(const Incoming& incoming) {
  if (incoming.stream != 0) {
    if (incoming.stream != stream_) return;
    if (std::holds_alternative<FromMaster>(incoming.event)) {
      if (is_finishing_) return;
    } else {
      stream_ = 0;
      if (is_finishing_) return BeDone();
    }
  }
  Dispatch(incoming.event);
}

void SimAgent::Freeze(Duration duration) {
  if (!is_alive_ || is_frozen_) return;
  world_.Trace(name_, "frozen for " + Text(duration));
  is_frozen_ = true;
  world_.queue.After(duration, [this, freezes = ++freezes_] {
    if (freezes == freezes_) Thaw();
  });
}

// What the warden and the workers have told is noticed before the deadlines that have passed; the
// threads of the network may bring a part of theirs later.
void SimAgent::Thaw() {
  if (!is_alive_ || !is_frozen_) return;
  world_.Trace(name_, "goes on, " + std::to_string(inbox_.size()) + " events have piled up");
  is_frozen_ = false;
  ++freezes_;
  int64_t least = 0;
  for (size_t i = 0; i < inbox_.size(); ++i) {
    if (inbox_[i].stream == 0) least = static_cast<int64_t>(i) + 1;
  }
  Drain(static_cast<int>(world_.random.Between(least, static_cast<int64_t>(inbox_.size()))));
  armed_for_ = kNever;
  if (is_alive_) TimerFired();
  world_.queue.After(world_.random.Between(0ms, 5ms), [this] {
    if (!is_frozen_) Drain(static_cast<int>(inbox_.size()));
  });
}

void SimAgent::Drain(int most) {
  for (; most > 0 && is_alive_ && !inbox_.empty(); --most) {
    const Incoming incoming = std::move(inbox_.front());
    inbox_.pop_front();
    Handle(incoming);
  }
}

void SimAgent::OnConnected(StreamId stream) {
  if (stream == stream_) is_connected_ = true;
}

void SimAgent::OnMessage(StreamId stream, const MasterMessage& message) {
  Deliver(FromMaster{message}, stream);
}

void SimAgent::OnEnded(StreamId stream, bool unreachable) {
  Deliver(MasterLost{unreachable, "the stream ended"}, stream);
}

// ── The machine ──────────────────────────────────────────────────────────────────────────────────

void SimAgent::Dispatch(SupervisorEvent event) {
  events_.push_back(std::move(event));
  if (std::exchange(is_dispatching_, true)) return;
  while (!events_.empty() && is_alive_) {
    const SupervisorEvent next = std::move(events_.front());
    events_.pop_front();
    StepMachine(next);
  }
  is_dispatching_ = false;
  if (is_alive_) TellFence();
  ArmTimer();
}

void SimAgent::TellFence() {
  const Time fence = machine_.Fence();
  if (std::exchange(fence_, fence) == fence) return;
  warden_.SetFence(fence == kNever ? kNever : options_.clock.World(fence));
}

void SimAgent::StepMachine(const SupervisorEvent& event) {
  const int64_t generation = machine_.assignment().generation;
  if (world_.traces) world_.Trace(name_, Text(event));
  const SupervisorEffects effects = machine_.Step(LocalTime(), event);
  for (const SupervisorEffect& effect : effects) {
    if (world_.traces) world_.Trace(name_, "  " + Text(effect));
    std::visit([this](const auto& e) { Perform(e); }, effect);
  }
  CheckStep(event, generation);
}

void SimAgent::CheckStep(const SupervisorEvent& event, int64_t generation_before) {
  if (machine_.assignment().generation < generation_before) {
    world_.Violate(name_ + ": its generation fell");
  }
  if (!is_alive_) return;
  const Time next = machine_.NextDeadline();
  const bool has_begun = !std::holds_alternative<muster::Begin>(event);
  if (has_begun && next == kNever) world_.Violate(name_ + ": it waits without a deadline");
  if (LocalTime() != stepped_at_) steps_at_this_time_ = 0;
  stepped_at_ = LocalTime();
  if (++steps_at_this_time_ > kStepsAtOnce) world_.Violate(name_ + ": a busy loop");
  if (std::holds_alternative<TimeCame>(event) && next <= LocalTime()) {
    world_.Violate(name_ + ": the deadline that has come is still the next one");
  }
}

void SimAgent::Perform(const ReservePort&) { Dispatch(PortReserved{options_.reserve_port(), ""}); }

void SimAgent::Perform(const OpenStream&) {
  if (stream_ != 0) network_.Drop(stream_);
  is_connected_ = false;
  options_.on_open();
  stream_ = network_.Open(options_.node, this);
}

void SimAgent::Perform(const SendToMaster& effect) {
  if (stream_ != 0 && !is_finishing_) network_.Send(stream_, effect.message);
}

void SimAgent::Perform(const FinishRendezvous&) {
  is_finishing_ = true;
  if (stream_ != 0 && is_connected_) return network_.HalfClose(stream_);
  if (stream_ != 0) network_.Drop(std::exchange(stream_, 0));
  BeDone();
}

void SimAgent::BeDone() {
  options_.when_idle([this] { Deliver(RendezvousDone{}); });
}

void SimAgent::Perform(const StartWorkers& effect) {
  if (warden_.alive() > 0) world_.Violate(name_ + ": starts workers while old ones are alive");
  for (int i = 0; i < hello().slots; ++i) warden_.Spawn(effect.assignment, i);
}

void SimAgent::Perform(const SignalTree& effect) { warden_.Signal(effect.signal, true); }
void SimAgent::Perform(const SignalWorkers& effect) { warden_.Signal(effect.signal, false); }

void SimAgent::Perform(const CloseGeneration&) {
  if (warden_.alive() > 0) world_.Violate(name_ + ": closes a generation that is alive");
  if (!machine_.workers().AllEnded() && !warden_.is_gone()) {
    world_.Violate(name_ + ": closes a generation with a worker that was not reaped");
  }
}

void SimAgent::Perform(const End& effect) {
  CheckEnd(effect.exit_code);
  is_alive_ = false;
  if (stream_ != 0) network_.Drop(std::exchange(stream_, 0));
  warden_.AgentIsGone();
  options_.on_end(effect.exit_code);
}

void SimAgent::CheckEnd(int exit_code) {
  if (warden_.alive() > 0) world_.Violate(name_ + ": ends while a process is alive");
  const Outcome& outcome = machine_.outcome();
  if (outcome.verdict && exit_code == outcome.verdict->exit_code) return;
  if (outcome.leaving_signal != 0 && exit_code == 128 + outcome.leaving_signal) return;
  if (exit_code == kExitBroken && warden_.is_gone()) return;
  if (exit_code == 0 && world_.drains > 0) return;
  if (exit_code == 77) return;  // a successor has the node; the cluster knows
  if (exit_code == kExitNoMaster && options_.may_have_no_master()) return;
  world_.Violate(name_ + ": exit code " + std::to_string(exit_code) + " has no cause");
}

void SimAgent::Kill() {
  if (!is_alive_) return;
  world_.Trace(name_, "killed");
  is_alive_ = false;
  ++timer_;
  if (stream_ != 0) network_.Drop(std::exchange(stream_, 0));
  warden_.AgentIsGone();
}

}  // namespace muster::sim
