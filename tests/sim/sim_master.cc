#include "tests/sim/sim_master.h"

#include <algorithm>
#include <utility>

#include "tests/sim/sim_text.h"

namespace muster::sim {
namespace {

using namespace std::chrono_literals;

// As in rendezvous/master_loop.cc.
constexpr Duration kLate = 250ms;
constexpr Duration kHearFirst = 100ms;

}  // namespace

SimMaster::SimMaster(SimWorld& world, SimNetwork& network, RecordStore& store, Options options)
    : world_(world), network_(network), store_(store), options_(std::move(options)) {}

void SimMaster::Start() {
  if (is_alive()) return;
  world_.Trace(options_.name, "starts");
  JobRegistry::Options options;
  options.seed = world_.random.Next();
  options.on_violation = [this](const std::string& what) {
    world_.Violate(options_.name + ": " + what);
  };
  options.is_held = [this](JobRegistry::Serial job) { return keeper_->IsHeld(job); };
  registry_ = std::make_unique<JobRegistry>(options);
  RecordKeeper::Write write;
  if (store_.exists()) {
    write = [this](std::vector<RecordChange> changes) {
      store_.Write(std::move(changes), [this](absl::Status status) { Deliver(std::move(status)); });
    };
  }
  keeper_ = std::make_unique<RecordKeeper>(registry_.get(), std::move(write));
  const MasterState state = store_.Load();
  registry_->Restore(world_.queue.now(), state);
  keeper_->Restored(state);
  ++lives_;
  network_.Listen(options_.host, this);
  Iterate(nullptr);
}

void SimMaster::Kill() {
  if (!is_alive()) return;
  world_.Trace(options_.name, "killed");
  network_.Listen(options_.host, nullptr);
  store_.Abandon();
  keeper_ = nullptr;
  registry_ = nullptr;
  open_.clear();
  inbox_.clear();
  idle_callbacks_.clear();
  is_frozen_ = has_retired_ = false;
  wake_ = judge_at_ = kNever;
  ++timer_;
  ++freezes_;
}

void SimMaster::Freeze(Duration duration) {
  if (!is_alive() || is_frozen_) return;
  world_.Trace(options_.name, "frozen for " + Text(duration));
  is_frozen_ = true;
  world_.queue.After(duration, [this, freezes = ++freezes_] {
    if (freezes == freezes_) Thaw();
  });
}

void SimMaster::Thaw() {
  if (!is_alive() || !is_frozen_) return;
  world_.Trace(options_.name,
               "goes on, " + std::to_string(inbox_.size()) + " events have piled up");
  is_frozen_ = false;
  ++freezes_;
  if (!inbox_.empty()) DrainOne();
  if (inbox_.empty()) Iterate(nullptr);
}

const RoundMachine* SimMaster::machine() const {
  return is_alive() ? registry_->Find(options_.job_id) : nullptr;
}

void SimMaster::OnOpened(StreamId stream) { Deliver(Opened{stream}); }
void SimMaster::OnMessage(StreamId stream, const AgentMessage& message, const std::string& peer) {
  Deliver(MessageArrived{stream, message, peer});
}
void SimMaster::OnBroken(StreamId stream, bool half_closed) {
  Deliver(StreamBroken{stream, half_closed});
}

void SimMaster::Drain(const DrainRequested& request) {
  if (is_alive()) Deliver(request);
}

void SimMaster::Deliver(Incoming incoming) {
  if (is_frozen_ || !inbox_.empty()) {
    inbox_.push_back(std::move(incoming));
  } else {
    Iterate(&incoming);
  }
}

// Threads bring what has piled up one by one.
void SimMaster::DrainOne() {
  const Incoming incoming = inbox_.front();
  Iterate(&incoming);
  if (!inbox_.empty()) inbox_.pop_front();
  if (inbox_.empty()) return;
  world_.queue.After(world_.random.Between(0us, 2ms), [this, life = lives_, freezes = freezes_] {
    if (is_alive() && life == lives_ && freezes == freezes_ && !inbox_.empty()) DrainOne();
  });
}

void SimMaster::Iterate(const Incoming* incoming) {
  has_retired_ = has_retired_ || (options_.leads && !options_.leads());
  if (has_retired_) return;
  const Time now = world_.queue.now();
  if (wake_ != kNever && now - wake_ > kLate) {
    judge_at_ = kNever;
    Step(WokeUp{now - wake_, now - looked_at_});
  }
  if (incoming != nullptr) std::visit([this](const auto& e) { Handle(e); }, *incoming);
  if (has_retired_) return;
  if (now >= judge_at_) {
    judge_at_ = kNever;
    Step(DeadlinePassed{});
  }
  if (now >= keeper_->NextDeadline()) Perform(keeper_->Pass(now, {}));
  TellIdle();
  Sleep();
}

void SimMaster::TellWhenIdle(std::function<void()> callback) {
  idle_callbacks_.push_back(std::move(callback));
  TellIdle();
}

void SimMaster::TellIdle() {
  if (idle_callbacks_.empty() || !open_.empty() || !registry_->idle() || !keeper_->empty()) return;
  // The process may end in the callback, and this master with it.
  for (auto& callback : std::exchange(idle_callbacks_, {})) {
    world_.queue.After(0s, std::move(callback));
  }
}

void SimMaster::Sleep() {
  const Time now = world_.queue.now();
  looked_at_ = now;
  const Time deadline = registry_->NextDeadline();
  if (deadline > now) judge_at_ = kNever;
  if (deadline <= now && judge_at_ == kNever) judge_at_ = now + kHearFirst;
  const Time wake = std::min(deadline > now ? deadline : judge_at_, keeper_->NextDeadline());
  if (wake == wake_) return;
  wake_ = wake;
  ++timer_;
  if (wake == kNever) return;
  world_.queue.At(wake, [this, timer = timer_] {
    if (timer == timer_ && is_alive() && !is_frozen_) Iterate(nullptr);
  });
}

void SimMaster::Handle(const Opened& event) { open_.insert(event.stream); }

void SimMaster::Handle(const MessageArrived& event) {
  if (open_.count(event.stream) != 0) Step(event);
}

void SimMaster::Handle(const StreamBroken& event) {
  if (open_.erase(event.stream) != 0) Step(event);
  network_.Close(event.stream);
}

void SimMaster::Handle(const absl::Status& written) {
  if (world_.traces) world_.Trace(options_.name, "the store says " + written.ToString());
  has_retired_ = absl::IsFailedPrecondition(written);
  if (has_retired_) return options_.on_deposed();
  Perform(keeper_->Answered(world_.queue.now(), written));
}

void SimMaster::Step(const RoundEvent& event) {
  if (world_.traces) world_.Trace(options_.name, Text(event));
  std::vector<JobEffects> all = registry_->Step(world_.queue.now(), event);
  for (const JobEffects& job : all) {
    for (const RoundEffect& effect : job.effects) {
      if (const auto* close = std::get_if<CloseStreamTo>(&effect)) open_.erase(close->stream);
      if (const auto* decided = std::get_if<Decided>(&effect))
        options_.on_decision(decided->reason);
    }
  }
  Perform(keeper_->Pass(world_.queue.now(), std::move(all)));
  const RoundMachine* job = machine();
  // A master that died while a generation ended has forgotten why: its successor may take the echo
  // of a membership change for the cause.
  const int chargeable = world_.worker_failures + world_.master_crashes;
  if (job != nullptr && job->restarts_used() > chargeable) {
    world_.Violate(options_.name + ": " + std::to_string(job->restarts_used()) + " restarts for " +
                   std::to_string(chargeable) + " failures");
  }
}

void SimMaster::Perform(const std::vector<JobEffects>& all) {
  for (const JobEffects& job : all) {
    for (const RoundEffect& effect : job.effects) {
      if (world_.traces) world_.Trace(options_.name, "  " + Text(effect));
      if (const auto* send = std::get_if<SendTo>(&effect)) {
        if (const auto* verdict = std::get_if<Verdict>(&send->message)) {
          options_.on_verdict(job.instance, *verdict);
        }
        network_.SendToAgent(send->stream, send->message);
      } else if (const auto* close = std::get_if<CloseStreamTo>(&effect)) {
        network_.Close(close->stream);
      }
    }
  }
}

}  // namespace muster::sim
