#include "rendezvous/job_registry.h"

#include <algorithm>
#include <set>
#include <utility>
#include <variant>

#include "rendezvous/invariants.h"

namespace muster {

JobRegistry::Serial JobRegistry::OpenInstance(const Hello& hello) {
  const RoundMachine* before = Find(hello.job_id);
  uint64_t number = (before == nullptr ? forgotten_instance_ : before->instance()) + 1;
  // A master that starts anew takes up the instance that still runs, under its number.
  if (hello.running.phase != WorkersPhase::kNone && before == nullptr) {
    number = std::max<uint64_t>(hello.running.assignment.instance, 1);
  }
  const Serial serial = ++last_serial_;
  machines_[serial] = std::make_unique<RoundMachine>(hello.job_id, number, options_.seed + serial);
  newest_[hello.job_id] = serial;
  return serial;
}

JobRegistry::Serial JobRegistry::SerialFor(const Hello& hello) {
  const auto newest = newest_.find(hello.job_id);
  if (newest == newest_.end()) return OpenInstance(hello);
  const RoundMachine& machine = *machines_.at(newest->second);
  if (machine.WasPartOf(hello)) return newest->second;
  for (const auto& [serial, older] : machines_) {
    if (older->job_id() == hello.job_id && older->WasPartOf(hello)) return serial;
  }
  return machine.verdict().has_value() ? OpenInstance(hello) : newest->second;
}

RoundMachine* JobRegistry::Route(StreamId stream, const AgentMessage& message) {
  const auto bound = streams_.find(stream);
  if (bound != streams_.end()) return machines_.at(bound->second).get();
  if (const auto* hello = std::get_if<Hello>(&message)) {
    const Serial serial = SerialFor(*hello);
    streams_[stream] = serial;
    return machines_.at(serial).get();
  }
  const auto* will = std::get_if<LastWill>(&message);
  const auto newest = will == nullptr ? newest_.end() : newest_.find(will->job_id);
  return newest == newest_.end() ? nullptr : machines_.at(newest->second).get();
}

void JobRegistry::StepOne(Time now, const RoundEvent& event, RoundMachine* machine,
                          std::vector<JobEffects>* all) {
  RoundSnapshot before;
  if (options_.on_violation) before = RoundSnapshot::Of(*machine);
  RoundEffects effects = machine->Step(now, event);
  if (options_.on_violation) {
    const std::string violation = CheckInvariants(before, *machine, now, event, effects);
    if (!violation.empty()) options_.on_violation("job " + machine->job_id() + ": " + violation);
  }
  for (const RoundEffect& effect : effects) {
    if (const auto* close = std::get_if<CloseStreamTo>(&effect)) streams_.erase(close->stream);
  }
  if (!effects.empty()) {
    all->push_back({machine->job_id(), machine->instance(), std::move(effects)});
  }
}

std::vector<JobEffects> JobRegistry::Step(Time now, const RoundEvent& event) {
  std::vector<JobEffects> all;
  if (const auto* arrived = std::get_if<MessageArrived>(&event)) {
    RoundMachine* machine = Route(arrived->stream, arrived->message);
    if (machine == nullptr) {
      all.push_back({"", 0, {CloseStreamTo{arrived->stream}}});
    } else {
      StepOne(now, event, machine, &all);
    }
  } else if (const auto* broken = std::get_if<StreamBroken>(&event)) {
    const auto bound = streams_.find(broken->stream);
    if (bound == streams_.end()) return all;
    RoundMachine* machine = machines_.at(bound->second).get();
    streams_.erase(bound);
    StepOne(now, event, machine, &all);
  } else {
    const bool only_due = std::holds_alternative<DeadlinePassed>(event);
    for (const auto& [serial, machine] : machines_) {
      if (only_due && machine->NextDeadline() > now) continue;
      StepOne(now, event, machine.get(), &all);
    }
  }
  ForgetEnded();
  return all;
}

std::vector<JobEffects> JobRegistry::StopJob(Time now, const std::string& job_id,
                                             const std::string& who) {
  std::vector<JobEffects> all;
  const auto newest = newest_.find(job_id);
  if (newest != newest_.end()) {
    StepOne(now, StopRequested{who}, machines_.at(newest->second).get(), &all);
  }
  return all;
}

Time JobRegistry::NextDeadline() const {
  Time earliest = kNever;
  for (const auto& [serial, machine] : machines_) {
    earliest = std::min(earliest, machine->NextDeadline());
  }
  return earliest;
}

bool JobRegistry::idle() const {
  return std::all_of(machines_.begin(), machines_.end(),
                     [](const auto& entry) { return entry.second->finished(); });
}

const RoundMachine* JobRegistry::Find(const std::string& job_id) const {
  const auto newest = newest_.find(job_id);
  return newest == newest_.end() ? nullptr : machines_.at(newest->second).get();
}

void JobRegistry::ForgetEnded() {
  if (machines_.size() <= kEndedMax) return;
  size_t ended = std::count_if(machines_.begin(), machines_.end(),
                               [](const auto& entry) { return entry.second->finished(); });
  std::set<Serial> in_use;
  for (const auto& [stream, serial] : streams_) in_use.insert(serial);
  for (auto it = machines_.begin(); it != machines_.end() && ended > kEndedMax;) {
    const RoundMachine& machine = *it->second;
    if (!machine.finished() || in_use.count(it->first) != 0) {
      ++it;
      continue;
    }
    forgotten_instance_ = std::max(forgotten_instance_, machine.instance());
    const auto newest = newest_.find(machine.job_id());
    if (newest != newest_.end() && newest->second == it->first) newest_.erase(newest);
    it = machines_.erase(it);
    --ended;
  }
}

}  // namespace muster
