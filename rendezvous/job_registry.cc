#include "rendezvous/job_registry.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "rendezvous/invariants.h"

namespace muster {

void JobRegistry::Restore(Time now, const MasterState& state) {
  master_ = state.master;
  for (const JobRecord& record : state.jobs) {
    const Serial serial = ++last_serial_;
    RoundMachine machine(record, options_.seed + serial, now);
    JobJournal journal{IncidentRecorder(machine, record.incidents)};
    const auto restored = jobs_.emplace(serial, Job{std::move(machine), std::move(journal)}).first;
    TakeNote(now, serial, &restored->second);
    const RoundMachine* newest = Find(record.job_id);
    if (newest == nullptr || newest->instance() < record.instance) newest_[record.job_id] = serial;
  }
}

std::optional<JobRecord> JobRegistry::Record(Serial serial) const {
  const auto found = jobs_.find(serial);
  if (found == jobs_.end()) return std::nullopt;
  std::optional<JobRecord> record = found->second.machine.Record();
  const std::deque<IncidentRecord>& incidents = found->second.journal.recorder().incidents();
  if (record) record->incidents.assign(incidents.begin(), incidents.end());
  return record;
}

JobRegistry::Serial JobRegistry::OpenInstance(const Hello& hello) {
  const RoundMachine* before = Find(hello.job_id);
  uint64_t number = (before == nullptr ? master_.forgotten_instance : before->instance()) + 1;
  // A master that starts anew takes up the instance that still runs, under its number.
  if (hello.running.phase != WorkersPhase::kNone && before == nullptr) {
    number = std::max<uint64_t>(hello.running.assignment.instance, 1);
  }
  const int64_t last_generation = before == nullptr ? 0 : before->last_generation();
  const Serial serial = ++last_serial_;
  jobs_.emplace(
      serial, Job{RoundMachine(hello.job_id, number, options_.seed + serial, last_generation), {}});
  newest_[hello.job_id] = serial;
  return serial;
}

// 0: there is none for it.
JobRegistry::Serial JobRegistry::InstanceOf(const Hello& hello) const {
  const auto newest = newest_.find(hello.job_id);
  if (newest == newest_.end()) return 0;
  const RoundMachine& machine = jobs_.at(newest->second).machine;
  if (machine.WasPartOf(hello)) return newest->second;
  for (const auto& [serial, older] : jobs_) {
    const bool is_same = older.machine.job_id() == hello.job_id;
    if (is_same && older.machine.WasPartOf(hello)) return serial;
  }
  return IsOver(newest->second) ? 0 : newest->second;
}

bool JobRegistry::IsOver(Serial serial) const {
  const bool is_held = options_.is_held && options_.is_held(serial);
  return jobs_.at(serial).machine.verdict().has_value() && !is_held;
}

MasterLoad JobRegistry::LoadOf(Serial serial, const Hello& hello) const {
  MasterLoad load{.jobs = jobs_.size() - ended_, .opens_job = serial == 0};
  if (serial == 0) return load;
  const RoundMachine& machine = jobs_.at(serial).machine;
  const auto node = machine.nodes().find(hello.node_id);
  load.nodes = machine.attached();
  // Those who come to hear the verdict take no room.
  load.is_of_them = machine.verdict() || (node != machine.nodes().end() && node->second.attached());
  return load;
}

void JobRegistry::Take(Time now, const MessageArrived& event, std::vector<JobEffects>* all) {
  const auto bound = streams_.find(event.stream);
  if (bound != streams_.end()) return StepOne(now, event, bound->second, all);
  if (const auto* will = std::get_if<LastWill>(&event.message)) {
    const auto newest = newest_.find(will->job_id);
    if (newest != newest_.end()) return StepOne(now, event, newest->second, all);
  }
  const auto* hello = std::get_if<Hello>(&event.message);
  if (hello == nullptr) return all->push_back({0, "", 0, {CloseStreamTo{event.stream}}});
  Serial serial = InstanceOf(*hello);
  if (const auto refusal = NoRoomFor(options_.limits, LoadOf(serial, *hello), *hello)) {
    const Rejected rejected{refusal->exit_code, Sentence(refusal->reason)};
    return all->push_back(
        {0,
         hello->job_id,
         0,
         {Decided{refusal->reason}, SendTo{event.stream, rejected}, CloseStreamTo{event.stream}}});
  }
  const bool is_new = serial == 0;
  if (is_new) serial = OpenInstance(*hello);
  streams_[event.stream] = serial;
  StepOne(now, event, serial, all);
  // It was refused, and nobody else knows of the job.
  if (is_new && jobs_.at(serial).machine.nodes().empty()) Forget(jobs_.find(serial));
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
  CountHeartbeat(machine, event);
  const int64_t unix_ms = options_.wall_clock ? options_.wall_clock() : 0;
  std::vector<IncidentRecord> news = job.journal.Observe(now, unix_ms, machine, event, effects);
  const bool persists = !effects.empty() && std::holds_alternative<Persist>(effects.front());
  if (!news.empty() && !persists) effects.insert(effects.begin(), Persist{});
  for (const RoundEffect& effect : effects) {
    if (const auto* close = std::get_if<CloseStreamTo>(&effect)) streams_.erase(close->stream);
  }
  TakeNote(now, serial, &job);
  all->push_back(
      {serial, machine.job_id(), machine.instance(), std::move(effects), std::move(news)});
}

// What is asked of all jobs after every event.
void JobRegistry::TakeNote(Time now, Serial serial, Job* job) {
  const RoundMachine& machine = job->machine;
  if (job->has_ended) --ended_;
  job->has_ended = machine.finished();
  if (job->has_ended) ++ended_;
  const bool is_alone = machine.attached() == 0 && !machine.verdict();
  job->alone_since = is_alone ? std::min(job->alone_since, now) : kNever;
  deadlines_.Set(serial, std::min(machine.NextDeadline(), GivenUpAt(*job)));
}

void JobRegistry::CountHeartbeat(const RoundMachine& machine, const RoundEvent& event) {
  const auto* arrived = std::get_if<MessageArrived>(&event);
  if (arrived == nullptr || !std::holds_alternative<Heartbeat>(arrived->message)) return;
  const Node* const node = machine.NodeOf(arrived->stream);
  if (node != nullptr) heartbeat_lag_.Add(node->heartbeat_lag);
}

std::vector<JobEffects> JobRegistry::Step(Time now, const RoundEvent& event) {
  std::vector<JobEffects> all;
  if (const auto* arrived = std::get_if<MessageArrived>(&event)) {
    Take(now, *arrived, &all);
  } else if (const auto* broken = std::get_if<StreamBroken>(&event)) {
    const auto bound = streams_.find(broken->stream);
    if (bound == streams_.end()) return all;
    const Serial serial = bound->second;
    streams_.erase(bound);
    StepOne(now, event, serial, &all);
  } else {
    const auto* woke = std::get_if<WokeUp>(&event);
    const bool only_due = std::holds_alternative<DeadlinePassed>(event);
    for (auto& [serial, job] : jobs_) {
      if (only_due && job.machine.NextDeadline() > now) continue;
      if (woke != nullptr && job.alone_since != kNever) job.alone_since += woke->missed;
      StepOne(now, event, serial, &all);
    }
    if (only_due) GiveUpAlone(now, &all);
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

Time JobRegistry::GivenUpAt(const Job& job) const {
  const bool is_limited = job.alone_since != kNever && options_.idle_time > Duration::zero();
  if (!is_limited) return kNever;
  return std::max(job.alone_since + options_.idle_time, job.machine.fenced_until());
}

// Those of which no agent was here for the idle time.
void JobRegistry::GiveUpAlone(Time now, std::vector<JobEffects>* all) {
  for (auto it = jobs_.begin(); it != jobs_.end();) {
    if (now < GivenUpAt(it->second)) {
      ++it;
      continue;
    }
    StepOne(now, LeftAlone{options_.idle_time}, it->first, all);
    it = Forget(it);
  }
}

void JobRegistry::ForgetEnded(std::vector<JobEffects>* all) {
  for (auto it = jobs_.begin(); it != jobs_.end() && ended_ > kEndedMax;) {
    const RoundMachine& machine = it->second.machine;
    if (!machine.finished()) {
      ++it;
      continue;
    }
    all->push_back({it->first, machine.job_id(), machine.instance(), {Persist{}}});
    it = Forget(it);
  }
}

JobRegistry::Jobs::iterator JobRegistry::Forget(Jobs::iterator job) {
  const Serial serial = job->first;
  const Job& what = job->second;
  // Before that nobody has heard of the number.
  if (what.machine.generation() > 0) {
    master_.forgotten_instance = std::max(master_.forgotten_instance, what.machine.instance());
  }
  const auto newest = newest_.find(what.machine.job_id());
  if (newest != newest_.end() && newest->second == serial) newest_.erase(newest);
  std::erase_if(streams_, [&](const auto& bound) { return bound.second == serial; });
  if (what.has_ended) --ended_;
  deadlines_.Set(serial, kNever);
  return jobs_.erase(job);
}

}  // namespace muster
