#include "rendezvous/job_registry.h"

#include <algorithm>
#include <set>
#include <utility>
#include <variant>

#include "rendezvous/invariants.h"

namespace muster {

void JobRegistry::Restore(Time now, const std::vector<JobRecord>& records) {
  for (const JobRecord& record : records) {
    const Serial serial = ++last_serial_;
    RoundMachine machine(record, options_.seed + serial, now);
    JobJournal journal{IncidentRecorder(machine, {})};
    jobs_.emplace(serial, Job{std::move(machine), std::move(journal)});
    const RoundMachine* newest = Find(record.job_id);
    if (newest == nullptr || newest->instance() < record.instance) newest_[record.job_id] = serial;
  }
}

std::optional<JobRecord> JobRegistry::Record(Serial serial) const {
  const auto found = jobs_.find(serial);
  return found == jobs_.end() ? std::nullopt : found->second.machine.Record();
}

JobRegistry::Serial JobRegistry::OpenInstance(const Hello& hello) {
  const RoundMachine* before = Find(hello.job_id);
  uint64_t number = (before == nullptr ? forgotten_instance_ : before->instance()) + 1;
  // A master that starts anew takes up the instance that still runs, under its number.
  if (hello.running.phase != WorkersPhase::kNone && before == nullptr) {
    number = std::max<uint64_t>(hello.running.assignment.instance, 1);
  }
  const Serial serial = ++last_serial_;
  jobs_.emplace(serial, Job{RoundMachine(hello.job_id, number, options_.seed + serial), {}});
  newest_[hello.job_id] = serial;
  return serial;
}

JobRegistry::Serial JobRegistry::SerialFor(const Hello& hello) {
  const auto newest = newest_.find(hello.job_id);
  if (newest == newest_.end()) return OpenInstance(hello);
  const RoundMachine& machine = jobs_.at(newest->second).machine;
  if (machine.WasPartOf(hello)) return newest->second;
  for (const auto& [serial, older] : jobs_) {
    const bool is_same = older.machine.job_id() == hello.job_id;
    if (is_same && older.machine.WasPartOf(hello)) return serial;
  }
  return machine.verdict().has_value() ? OpenInstance(hello) : newest->second;
}

JobRegistry::Serial JobRegistry::Route(StreamId stream, const AgentMessage& message) {
  const auto bound = streams_.find(stream);
  if (bound != streams_.end()) return bound->second;
  if (const auto* hello = std::get_if<Hello>(&message)) {
    return streams_[stream] = SerialFor(*hello);
  }
  const auto* will = std::get_if<LastWill>(&message);
  const auto newest = will == nullptr ? newest_.end() : newest_.find(will->job_id);
  return newest == newest_.end() ? 0 : newest->second;
}

void JobRegistry::StepOne(Time now, const RoundEvent& event, Serial serial,
                          std::vector<JobEffects>* all) {
  Job& job = jobs_.at(serial);
  RoundMachine& machine = job.machine;
  RoundSnapshot before;
  if (options_.on_violation) before = RoundSnapshot::Of(machine);
  RoundEffects effects = machine.Step(now, event);
  if (options_.on_violation) {
    const std::string violation = CheckInvariants(before, machine, now, event, effects);
    if (!violation.empty()) options_.on_violation("job " + machine.job_id() + ": " + violation);
  }
  const int64_t unix_ms = options_.wall_clock ? options_.wall_clock() : 0;
  std::vector<IncidentRecord> news = job.journal.Observe(now, unix_ms, machine, event, effects);
  for (const RoundEffect& effect : effects) {
    if (const auto* close = std::get_if<CloseStreamTo>(&effect)) streams_.erase(close->stream);
  }
  all->push_back(
      {serial, machine.job_id(), machine.instance(), std::move(effects), std::move(news)});
}

std::vector<JobEffects> JobRegistry::Step(Time now, const RoundEvent& event) {
  std::vector<JobEffects> all;
  if (const auto* arrived = std::get_if<MessageArrived>(&event)) {
    const Serial serial = Route(arrived->stream, arrived->message);
    if (serial == 0) {
      all.push_back({0, "", 0, {CloseStreamTo{arrived->stream}}});
    } else {
      StepOne(now, event, serial, &all);
    }
  } else if (const auto* broken = std::get_if<StreamBroken>(&event)) {
    const auto bound = streams_.find(broken->stream);
    if (bound == streams_.end()) return all;
    const Serial serial = bound->second;
    streams_.erase(bound);
    StepOne(now, event, serial, &all);
  } else {
    const bool only_due = std::holds_alternative<DeadlinePassed>(event);
    for (const auto& [serial, job] : jobs_) {
      if (only_due && job.machine.NextDeadline() > now) continue;
      StepOne(now, event, serial, &all);
    }
  }
  ForgetEnded(&all);
  return all;
}

std::vector<JobEffects> JobRegistry::StepJob(Time now, const std::string& job_id,
                                             const RoundEvent& event) {
  std::vector<JobEffects> all;
  const auto newest = newest_.find(job_id);
  if (newest != newest_.end()) StepOne(now, event, newest->second, &all);
  return all;
}

Time JobRegistry::NextDeadline() const {
  Time earliest = kNever;
  for (const auto& [serial, job] : jobs_) {
    earliest = std::min(earliest, job.machine.NextDeadline());
  }
  return earliest;
}

bool JobRegistry::idle() const {
  return std::all_of(jobs_.begin(), jobs_.end(),
                     [](const auto& entry) { return entry.second.machine.finished(); });
}

const RoundMachine* JobRegistry::Find(const std::string& job_id) const {
  const auto newest = newest_.find(job_id);
  return newest == newest_.end() ? nullptr : &jobs_.at(newest->second).machine;
}

std::vector<JobReport> JobRegistry::Report(Time now, const std::string& job_id,
                                           StatusDetail detail) const {
  std::vector<JobReport> reports;
  for (const auto& [id, serial] : newest_) {
    if (!job_id.empty() && id != job_id) continue;
    const Job& job = jobs_.at(serial);
    reports.push_back(
        {StatusOf(job.machine, job.journal.recorder(), now, detail), job.journal.counters()});
  }
  return reports;
}

std::vector<std::string> JobRegistry::job_ids() const {
  std::vector<std::string> ids;
  for (const auto& [id, serial] : newest_) ids.push_back(id);
  return ids;
}

void JobRegistry::ForgetEnded(std::vector<JobEffects>* all) {
  if (jobs_.size() <= kEndedMax) return;
  size_t ended = std::count_if(jobs_.begin(), jobs_.end(),
                               [](const auto& entry) { return entry.second.machine.finished(); });
  std::set<Serial> in_use;
  for (const auto& [stream, serial] : streams_) in_use.insert(serial);
  for (auto it = jobs_.begin(); it != jobs_.end() && ended > kEndedMax;) {
    const RoundMachine& machine = it->second.machine;
    if (!machine.finished() || in_use.count(it->first) != 0) {
      ++it;
      continue;
    }
    forgotten_instance_ = std::max(forgotten_instance_, machine.instance());
    const auto newest = newest_.find(machine.job_id());
    if (newest != newest_.end() && newest->second == it->first) newest_.erase(newest);
    all->push_back({it->first, machine.job_id(), machine.instance(), {Persist{}}});
    it = jobs_.erase(it);
    --ended;
  }
}

}  // namespace muster
