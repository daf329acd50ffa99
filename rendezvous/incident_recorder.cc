#include "rendezvous/incident_recorder.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>
#include <variant>

namespace muster {
namespace {

bool IsUnderWay(const RoundMachine& machine) {
  return machine.phase() == RoundPhase::kRunning || machine.phase() == RoundPhase::kRecovering;
}

const Reason* DecisionOf(const RoundEffect& effect) {
  const auto* decided = std::get_if<Decided>(&effect);
  return decided == nullptr ? nullptr : &decided->reason;
}

bool IsAboutTheEnd(const Reason& reason) {
  return reason.code != ReasonCode::kNodeJoined && reason.code != ReasonCode::kAddressGuessed;
}

// Why the generation ended. A machine that has gone on within the same step has another reason by
// now, but has told this one first.
Reason CauseOf(const RoundMachine& machine, const RoundEffects& effects) {
  if (machine.phase() == RoundPhase::kStopping) return machine.reason();
  for (const RoundEffect& effect : effects) {
    const Reason* reason = DecisionOf(effect);
    if (reason != nullptr && IsAboutTheEnd(*reason)) return *reason;
  }
  return machine.reason();
}

const AgentMessage* MessageOf(const RoundEvent& event) {
  const auto* arrived = std::get_if<MessageArrived>(&event);
  return arrived == nullptr ? nullptr : &arrived->message;
}

// What the message of this step says of the end of a worker, or nullptr.
const WorkerFailed* FailureIn(const RoundEvent& event) {
  const AgentMessage* message = MessageOf(event);
  if (message == nullptr) return nullptr;
  if (const auto* failed = std::get_if<WorkerFailed>(message)) return failed;
  const auto* hello = std::get_if<Hello>(message);
  return hello != nullptr && hello->running.failure ? &*hello->running.failure : nullptr;
}

bool IsLoss(ReasonCode code) {
  switch (code) {
    case ReasonCode::kNodeLostStream:
    case ReasonCode::kNodeLostSilence:
    case ReasonCode::kNodeStuck:
    case ReasonCode::kNodeReplaced:
    case ReasonCode::kMemberMissing:
    case ReasonCode::kWorkersVanished:
    case ReasonCode::kWorkersFenced:
      return true;
    default:
      return false;
  }
}

template <typename T>
bool Is(const AgentMessage* message) {
  return message != nullptr && std::holds_alternative<T>(*message);
}

bool HasAssigned(const RoundEffects& effects) {
  return std::any_of(effects.begin(), effects.end(), [](const RoundEffect& effect) {
    const auto* send = std::get_if<SendTo>(&effect);
    return send != nullptr && std::holds_alternative<Assignment>(send->message);
  });
}

// Each member has sent this report, or needs to no more.
bool HaveReported(const RoundMachine& machine, bool Node::*report) {
  return std::all_of(machine.seats().begin(), machine.seats().end(), [&](const Seat& seat) {
    if (HasSucceeded(seat)) return true;
    const auto node = machine.nodes().find(seat.node_id);
    return node != machine.nodes().end() && node->second.*report;
  });
}

constexpr std::array kPhases = {&IncidentRecord::stop, &IncidentRecord::rendezvous,
                                &IncidentRecord::start, &IncidentRecord::ready};
constexpr size_t kStopped = 1;
constexpr size_t kAssigned = 2;
constexpr size_t kStarted = 3;
constexpr size_t kReady = 4;

}  // namespace

IncidentRecorder::IncidentRecorder(const RoundMachine& restored, std::vector<IncidentRecord> known)
    : incidents_(known.begin(), known.end()),
      last_number_(known.empty() ? 0 : known.back().number),
      was_under_way_(IsUnderWay(restored)),
      generation_(restored.generation()),
      restarts_used_(restored.restarts_used()) {
  if (const IncidentRecord* record = open()) {
    is_taken_over_ = true;
    has_lost_node_ = record->kind == IncidentKind::kNodeLost;
    if (record->stop) phases_reached_ = kStopped;
    if (record->next_generation != 0) phases_reached_ = kAssigned;
    if (record->start) phases_reached_ = kStarted;
  }
}

const IncidentRecord* IncidentRecorder::open() const {
  const bool is_open = !incidents_.empty() && incidents_.back().outcome == IncidentOutcome::kOpen;
  return is_open ? &incidents_.back() : nullptr;
}

std::vector<IncidentRecord> IncidentRecorder::Observe(Time now, int64_t unix_ms,
                                                      const RoundMachine& machine,
                                                      const RoundEvent& event,
                                                      const RoundEffects& effects) {
  now_ = now;
  says_ready_ = says_ready_ || Is<WorkersReady>(MessageOf(event));
  const bool is_under_way = IsUnderWay(machine);
  const bool is_same = is_under_way && machine.generation() == generation_;
  // A master that recovers may hear of a newer generation than the one it has heard of so far.
  const bool has_ended = was_under_way_ && !is_same && !(is_under_way && !HasAssigned(effects));
  const bool is_end_wanted = machine.reason().code == ReasonCode::kJobStopped ||
                             (machine.verdict() && machine.verdict()->succeeded);
  const bool has_begun = has_ended && !is_end_wanted;
  if (has_begun) {
    if (open() != nullptr) End(IncidentOutcome::kRepeated);
    Begin(unix_ms, machine, effects);
  }
  if (open() != nullptr) Follow(machine, event, effects);
  if (has_begun) news_.push_back(incidents_.back());
  if (open() != nullptr && is_same) FollowStart(machine, event);
  if (open() != nullptr && machine.verdict()) FollowVerdict(*machine.verdict());

  if (machine.generation() != generation_ && HasAssigned(effects)) assigned_at_ = now;
  if (!is_under_way) assigned_at_.reset();
  was_under_way_ = is_under_way;
  generation_ = machine.generation();
  restarts_used_ = machine.restarts_used();
  return std::exchange(news_, {});
}

void IncidentRecorder::Begin(int64_t unix_ms, const RoundMachine& machine,
                             const RoundEffects& effects) {
  IncidentRecord record;
  record.number = ++last_number_;
  // One step can take a master that recovers to a newer generation and end it.
  record.generation = IsUnderWay(machine) ? generation_ : machine.generation();
  record.unix_ms = unix_ms;
  record.cause = CauseOf(machine, effects);
  if (record.cause.code == ReasonCode::kNodeLostSilence) {
    record.detect = std::chrono::milliseconds(record.cause.a);
  }
  incidents_.push_back(std::move(record));
  if (incidents_.size() > kKept) incidents_.pop_front();
  has_lost_node_ = is_taken_over_ = false;
  phases_reached_ = 0;
  phase_began_at_ = now_;
}

void IncidentRecorder::Follow(const RoundMachine& machine, const RoundEvent& event,
                              const RoundEffects& effects) {
  FollowCauses(event, effects);
  Classify(machine);
  IncidentRecord& record = incidents_.back();
  record.charged = record.charged || machine.restarts_used() > restarts_used_;
  if (record.next_generation == 0 && machine.generation() > record.generation) {
    record.next_generation = machine.generation();
    started_reports_ = ready_reports_ = 0;
    Reach(kAssigned);
  } else if (machine.seats().empty()) {
    Reach(kStopped);
  }
}

void IncidentRecorder::FollowCauses(const RoundEvent& event, const RoundEffects& effects) {
  IncidentRecord& record = incidents_.back();
  for (const RoundEffect& effect : effects) {
    const Reason* reason = DecisionOf(effect);
    if (reason == nullptr) continue;
    has_lost_node_ = has_lost_node_ || IsLoss(reason->code);
    const WorkerFailed* failed = FailureIn(event);
    const bool is_first = reason->code == ReasonCode::kWorkerFailed && record.failed_node.empty();
    if (!is_first || failed == nullptr) continue;
    record.failed_node = reason->subject;
    record.failed_rank = reason->a;
    record.failed_status = failed->status;
    record.out_of_memory = failed->evidence.out_of_memory;
  }
}

// While it is under way a worker's failure may turn out to follow from the loss of another node;
// the machine knows when all have answered.
void IncidentRecorder::Classify(const RoundMachine& machine) {
  IncidentRecord& record = incidents_.back();
  if (record.next_generation != 0) return;
  const bool is_over = machine.seats().empty() || machine.generation() > record.generation;
  const Incident& incident = is_over ? machine.last_incident() : machine.incident();
  if (incident.planned()) {
    record.kind = IncidentKind::kMembership;
  } else if (incident.member_gone() || record.failed_node.empty()) {
    record.kind = has_lost_node_ ? IncidentKind::kNodeLost : IncidentKind::kMembership;
  } else {
    record.kind = KindOf(record.failed_status, record.out_of_memory);
  }
}

// Counting comes first: looking at all members each time one reports would take too long with
// thousands of them.
void IncidentRecorder::FollowStart(const RoundMachine& machine, const RoundEvent& event) {
  const AgentMessage* message = MessageOf(event);
  const bool has_succeeded = Is<WorkersSucceeded>(message);
  const bool is_back = Is<Hello>(message);  // with workers that run
  if (Is<WorkersStarted>(message) || is_back || has_succeeded) ++started_reports_;
  if (Is<WorkersReady>(message) || has_succeeded) ++ready_reports_;
  const size_t members = machine.seats().size();
  if (phases_reached_ < kStarted && started_reports_ >= members &&
      HaveReported(machine, &Node::started)) {
    Reach(kStarted);
  }
  if (ready_reports_ >= members && HaveReported(machine, &Node::ready)) Reach(kReady);
  const bool awaits_ready = says_ready_ && !is_taken_over_;
  if (phases_reached_ == kReady || (phases_reached_ == kStarted && !awaits_ready)) {
    End(IncidentOutcome::kRecovered);
  }
}

void IncidentRecorder::FollowVerdict(const Verdict& verdict) {
  // A success without a next generation: the order to stop crossed the news that all was done.
  const bool has_recovered = verdict.succeeded && incidents_.back().next_generation != 0;
  if (has_recovered) Reach(kReady);
  End(has_recovered ? IncidentOutcome::kRecovered : IncidentOutcome::kJobEnded);
}

// So many phases are over now; those before the last took no time of their own.
void IncidentRecorder::Reach(size_t phases) {
  for (; phases_reached_ < phases; ++phases_reached_) {
    if (phase_began_at_) incidents_.back().*kPhases[phases_reached_] = now_ - *phase_began_at_;
    phase_began_at_ = now_;
  }
}

void IncidentRecorder::End(IncidentOutcome outcome) {
  incidents_.back().outcome = outcome;
  news_.push_back(incidents_.back());
}

}  // namespace muster
