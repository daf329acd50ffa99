#include "rendezvous/job_journal.h"

#include <variant>

namespace muster {

std::vector<IncidentRecord> JobJournal::Observe(Time now, int64_t unix_ms,
                                                const RoundMachine& machine,
                                                const RoundEvent& event,
                                                const RoundEffects& effects) {
  std::vector<IncidentRecord> news = recorder_.Observe(now, unix_ms, machine, event, effects);
  if (!first_hello_at_ && !machine.nodes().empty()) first_hello_at_ = now;
  CountExits(machine, event);
  if (machine.generation() != generation_) CountGeneration(now, machine);
  for (const IncidentRecord& record : news) {
    if (record.outcome == IncidentOutcome::kRecovered) counters_.recovery.Add(record.total());
    if (record.outcome != IncidentOutcome::kOpen) ++counters_.incidents[Label(record.kind)];
  }
  return news;
}

// Of each node one failure a generation is told at most, and a job that succeeds has no other ends.
void JobJournal::CountExits(const RoundMachine& machine, const RoundEvent& event) {
  const bool has_succeeded = machine.verdict() && machine.verdict()->succeeded;
  if (has_succeeded && !had_succeeded_ && !machine.seats().empty()) {
    counters_.worker_exits["ok"] += machine.seats().front().assignment.world_size;
  }
  had_succeeded_ = has_succeeded;
  const auto* arrived = std::get_if<MessageArrived>(&event);
  if (arrived == nullptr) return;
  if (const auto* failed = std::get_if<WorkerFailed>(&arrived->message)) {
    if (failed->generation == machine.generation()) {
      ++counters_.worker_exits[Label(KindOf(failed->status, failed->evidence.out_of_memory))];
    }
  }
}

void JobJournal::CountGeneration(Time now, const RoundMachine& machine) {
  generation_ = machine.generation();
  if (!recorder_.assigned_at() || machine.seats().empty()) return;
  const IncidentRecord* incident =
      recorder_.incidents().empty() ? nullptr : &recorder_.incidents().back();
  const bool follows = incident != nullptr && incident->next_generation == generation_;
  const std::string reason = follows ? Label(incident->cause.code) : "formed";
  ++counters_.generations[reason];
  if (!follows) {
    if (first_hello_at_) counters_.rendezvous.Add(now - *first_hello_at_);
    return;
  }
  if (incident->rendezvous) counters_.rendezvous.Add(*incident->rendezvous);
  counters_.worker_restarts[reason] += machine.seats().front().assignment.world_size;
}

}  // namespace muster
