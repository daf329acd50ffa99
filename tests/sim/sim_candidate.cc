#include "tests/sim/sim_candidate.h"

#include <utility>
#include <variant>

namespace muster::sim {
namespace {

using namespace std::chrono_literals;

}  // namespace

void SimCandidate::Claim::Begin(int64_t revision, MasterState state) {
  revision_ = revision;
  state_ = std::move(state);
}

void SimCandidate::Claim::Write(std::vector<RecordChange> changes,
                                std::function<void(absl::Status)> answer) {
  etcd_.Write(number_, revision_, std::move(changes),
              [this, term = terms_, answer = std::move(answer)](absl::Status status) {
                if (term == terms_) answer(std::move(status));
              });
}

SimCandidate::SimCandidate(SimWorld& world, SimNetwork& network, SimEtcd& etcd, Options options)
    : world_(world),
      etcd_(etcd),
      options_(std::move(options)),
      name_("m" + std::to_string(options_.number)),
      claim_(etcd, options_.number),
      master_(world, network, claim_, MasterOptions()) {}

SimMaster::Options SimCandidate::MasterOptions() {
  SimMaster::Options options = options_.master;
  options.name = name_;
  options.host = options_.number;
  options.leads = [this] {
    return machine_ && options_.clock.Local(world_.queue.now()) < machine_->leads_until();
  };
  options.on_deposed = [this] { StepSoon(election::StepDownAsked{"deposed"}); };
  return options;
}

void SimCandidate::Start() {
  if (is_alive()) return;
  world_.Trace(name_, "campaigns");
  ++lives_;
  machine_.emplace(world_.random.Next());
  Step(election::Begin{});
}

void SimCandidate::Kill() {
  if (!is_alive()) return;
  world_.Trace(name_, "killed");
  ++lives_;
  ++terms_;
  ++timer_;
  ++freezes_;
  armed_for_ = kNever;
  is_frozen_ = false;
  inbox_.clear();
  machine_.reset();
  master_.Kill();
  options_.on_change();
}

void SimCandidate::Freeze(Duration duration) {
  if (!is_alive() || is_frozen_) return;
  world_.Trace(name_, "frozen for " + std::to_string(duration / 1ms) + "ms");
  is_frozen_ = true;
  master_.Freeze(2 * duration + 1h);  // until Thaw()
  world_.queue.After(duration, [this, freezes = ++freezes_] {
    if (freezes == freezes_) Thaw();
  });
}

// Two threads, either of which may be first.
void SimCandidate::Thaw() {
  if (!is_alive() || !is_frozen_) return;
  is_frozen_ = false;
  ++freezes_;
  const bool is_master_first = world_.random.Chance(0.5);
  if (is_master_first) master_.Thaw();
  armed_for_ = kNever;
  for (const auto& what : std::exchange(inbox_, {})) what();
  if (is_alive()) Step(election::TimeCame{});
  if (!is_master_first) master_.Thaw();
}

// Of this life.
void SimCandidate::Deliver(std::function<void()> what) {
  if (is_frozen_) {
    inbox_.push_back(std::move(what));
  } else {
    what();
  }
}

void SimCandidate::StepSoon(election::Event event) {
  world_.queue.After(world_.random.Between(0us, 2ms), [this, life = lives_, event] {
    if (life == lives_) Deliver([this, event] { Step(event); });
  });
}

void SimCandidate::Step(const election::Event& event) {
  const auto effects = machine_->Step(options_.clock.Local(world_.queue.now()), event);
  for (const election::Effect& effect : effects) Perform(effect);
  ArmTimer();
}

void SimCandidate::ArmTimer() {
  const Time deadline = machine_->NextDeadline();
  if (deadline == armed_for_) return;
  armed_for_ = deadline;
  ++timer_;
  if (deadline == kNever) return;
  world_.queue.At(options_.clock.World(deadline), [this, timer = timer_] {
    if (timer != timer_ || is_frozen_) return;
    armed_for_ = kNever;
    Step(election::TimeCame{});
  });
}

void SimCandidate::Perform(const election::Effect& effect) {
  if (const auto* elected = std::get_if<election::Elected>(&effect)) {
    world_.Trace(name_, "elected");
    return Serve(elected->create_revision);
  }
  if (const auto* lost = std::get_if<election::Lost>(&effect)) {
    world_.Trace(name_, "leads no more: " + lost->why);
    return EndTerm();
  }
  if (std::holds_alternative<election::LeaderIs>(effect)) return;
  if (std::holds_alternative<election::Over>(effect)) return;
  etcd_.Call(options_.number, effect, [this, life = lives_](const election::Event& event) {
    if (life == lives_) Deliver([this, event] { Step(event); });
  });
}

void SimCandidate::Serve(int64_t claim) {
  const uint64_t term = ++terms_;
  master_.Kill();
  etcd_.Load(options_.number, claim, [this, term, claim](absl::StatusOr<MasterState> state) {
    if (term != terms_) return;
    Deliver([this, term, claim, state = std::move(state)] {
      if (term != terms_) return;
      if (!state.ok()) return Step(election::StepDownAsked{state.status().ToString()});
      claim_.Begin(claim, *state);
      master_.Start();
      Step(election::ServingAt{std::to_string(options_.number)});
      options_.on_change();
    });
  });
}

// The thread that does it may have to wait for a processor.
void SimCandidate::EndTerm() {
  const uint64_t term = ++terms_;
  world_.queue.After(world_.random.Between(0ms, 20ms), [this, term] {
    if (term != terms_) return;
    Deliver([this, term] {
      if (term != terms_) return;
      master_.Kill();
      options_.on_change();
    });
  });
}

}  // namespace muster::sim
