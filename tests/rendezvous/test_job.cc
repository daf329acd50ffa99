#include "tests/rendezvous/test_job.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "rendezvous/invariants.h"

namespace muster {
namespace {

using namespace std::chrono_literals;

// A small number that only depends on the name.
int NumberOf(const std::string& name) {
  int number = 0;
  for (const char c : name) number = (number * 31 + c) % 997;
  return number;
}

// What must hold of the incidents beside the machine after every step.
// `taken_over`: from another master, which may have measured a phase that is missing now.
std::string JournalViolation(const IncidentRecorder& recorder, const RoundMachine& machine,
                             uint64_t taken_over) {
  for (const IncidentRecord& record : recorder.incidents()) {
    const std::string name = "incident " + std::to_string(record.number);
    const bool is_open = record.outcome == IncidentOutcome::kOpen;
    if (is_open && (&record != &recorder.incidents().back() || machine.verdict())) {
      return name + " is still open";
    }
    for (const auto& phase : {record.stop, record.rendezvous, record.start, record.ready}) {
      if (phase && *phase < Duration::zero()) return name + " has a negative phase";
    }
    const bool has_recovered = record.outcome == IncidentOutcome::kRecovered;
    const bool is_whole = record.stop && record.rendezvous && record.start;
    if (has_recovered && record.number > taken_over && !is_whole) {
      return name + " has recovered without a phase";
    }
    if (has_recovered && record.next_generation <= record.generation) {
      return name + " has recovered without a generation";
    }
  }
  return "";
}

}  // namespace

TestJob::TestJob(JobSettings settings) : settings_(settings), machine_("job", 1, 42) {}

Hello TestJob::HelloOf(const std::string& name) const {
  const int number = NumberOf(name);
  Hello hello;
  hello.job_id = "job";
  hello.settings = settings_;
  hello.node_id = name;
  hello.incarnation = 1000 + number;
  hello.slots = 2;
  hello.own_addresses = {"10.0." + std::to_string(number / 250) + "." +
                         std::to_string(number % 250 + 1)};
  hello.dialled_host = "10.0.0.1";
  hello.next_port = 30000 + number;
  return hello;
}

const RoundEffects& TestJob::Join(const Hello& hello, const std::string& peer_address) {
  const StreamId stream = ++last_stream_;
  streams_[hello.node_id] = stream;
  names_[stream] = hello.node_id;
  hellos_[hello.node_id] = hello;
  if (hello.running.phase != WorkersPhase::kNone) places_[hello.node_id] = hello.running.assignment;
  muted_.erase(hello.node_id);
  const std::string peer = peer_address.empty() && !hello.own_addresses.empty()
                               ? hello.own_addresses.front()
                               : peer_address;
  return Step(MessageArrived{stream, hello, peer});
}

const RoundEffects& TestJob::Rejoin(const std::string& name, WorkersPhase phase, bool fenced) {
  Hello hello = hellos_.at(name);
  hello.running = {phase, places_[name]};
  hello.running.fenced = fenced;
  hello.attached_before = true;
  return Join(hello);
}

const RoundEffects& TestJob::Say(const std::string& name, AgentMessage message) {
  return Step(MessageArrived{streams_.at(name), std::move(message), ""});
}

const RoundEffects& TestJob::Break(const std::string& name, bool half_closed) {
  return Step(StreamBroken{streams_.at(name), half_closed});
}

const RoundEffects& TestJob::Will(const LastWill& will) {
  const StreamId stream = ++last_stream_;
  names_[stream] = "warden of " + will.node_id;
  return Step(MessageArrived{stream, will, ""});
}

const RoundEffects& TestJob::Step(const RoundEvent& event) {
  const RoundSnapshot before = RoundSnapshot::Of(machine_);
  const std::optional<JobRecord> kept = machine_.Record();
  const Time deadline = machine_.NextDeadline();
  effects_ = machine_.Step(now_, event);
  std::string broken = CheckInvariants(before, machine_, now_, event, effects_);
  if (broken.empty()) broken = CheckRecord(kept, event);
  const bool is_first = std::exchange(has_restarted_, false);  // says where the job is
  if (std::holds_alternative<DeadlinePassed>(event) && deadline > now_ && !effects_.empty() &&
      !is_first) {
    broken = "a deadline before its time had effects";
  }
  if (!effects_.empty() && std::holds_alternative<Persist>(effects_.front())) ++writes_;
  const auto unix_ms = std::chrono::floor<std::chrono::milliseconds>(now_.time_since_epoch());
  for (IncidentRecord& record :
       journal_.Observe(now_, unix_ms.count(), machine_, event, effects_)) {
    news_.push_back(std::move(record));
  }
  if (broken.empty()) broken = JournalViolation(journal_.recorder(), machine_, taken_over_);
  if (!broken.empty() && broken_.empty()) {
    broken_ = broken;
    ADD_FAILURE() << "invariant broken: " << broken;
  }
  std::erase_if(effects_, [](const RoundEffect& effect) {
    const auto* send = std::get_if<SendTo>(&effect);
    if (send == nullptr) return std::holds_alternative<Persist>(effect);
    return std::holds_alternative<HeartbeatAck>(send->message);
  });
  for (const RoundEffect& effect : effects_) {
    const auto* send = std::get_if<SendTo>(&effect);
    if (send == nullptr) continue;
    if (const auto* place = std::get_if<Assignment>(&send->message)) {
      places_[NameOf(send->stream)] = *place;
    }
  }
  if (watcher_) watcher_(effects_);
  return effects_;
}

// `effects_` are those of the step.
std::string TestJob::CheckRecord(const std::optional<JobRecord>& before,
                                 const RoundEvent& event) const {
  const auto is_persist = [](const RoundEffect& effect) {
    return std::holds_alternative<Persist>(effect);
  };
  const auto count = std::count_if(effects_.begin(), effects_.end(), is_persist);
  const std::optional<JobRecord> after = machine_.Record();
  if (after != before && count == 0) return "the record has changed and nobody was told";
  if (count > 1 || (count == 1 && !is_persist(effects_.front())))
    return "Persist comes once, first";
  const auto* message = std::get_if<MessageArrived>(&event);
  if (count > 0 && message != nullptr && std::holds_alternative<Heartbeat>(message->message)) {
    return "a heartbeat is written";
  }
  if (after && RoundMachine(*after, 1, now_).Record() != after) {
    return "a machine that was restored has another record";
  }
  return "";
}

void TestJob::Restart() {
  const std::optional<JobRecord> record = machine_.Record();
  machine_ = record ? RoundMachine(*record, 42, now_) : RoundMachine("job", 1, 42);
  std::vector<IncidentRecord> known;
  if (record) {
    const std::deque<IncidentRecord>& incidents = journal_.recorder().incidents();
    known.assign(incidents.begin(), incidents.end());
    if (!known.empty()) taken_over_ = known.back().number;
  }
  journal_ = JobJournal(IncidentRecorder(machine_, known));
  has_restarted_ = true;
}

const RoundEffects& TestJob::Stopped(const std::string& name, bool fenced) {
  return Say(name, WorkersStopped{machine_.generation(), hellos_.at(name).next_port, fenced});
}

const RoundEffects& TestJob::Succeeded(const std::string& name) {
  return Say(name, WorkersSucceeded{machine_.generation(), hellos_.at(name).next_port});
}

const RoundEffects& TestJob::Failed(const std::string& name, int exit_code, Duration uptime) {
  WorkerFailed failed;
  failed.generation = machine_.generation();
  failed.rank = places_[name].rank_base;
  failed.pid = 1;
  failed.status = ExitStatus::Exited(exit_code);
  failed.uptime = uptime;
  return Say(name, failed);
}

void TestJob::HeartbeatAll() {
  std::vector<std::string> names;
  for (const auto& [id, node] : machine_.nodes()) {
    if (node.attached() && muted_.count(id) == 0) names.push_back(id);
  }
  for (const std::string& name : names) Say(name, Heartbeat{1});
}

void TestJob::Advance(Duration duration) {
  const Time end = now_ + duration;
  while (now_ < end) {
    now_ = std::min({end, machine_.NextDeadline(), now_ + 5s});
    if (machine_.NextDeadline() <= now_) Step(DeadlinePassed{});
    HeartbeatAll();
  }
}

void TestJob::Freeze(Duration duration) {
  now_ += duration;
  Step(WokeUp{duration, duration});
  if (machine_.NextDeadline() <= now_) Step(DeadlinePassed{});
}

std::vector<MasterMessage> TestJob::SentTo(const std::string& name) const {
  std::vector<MasterMessage> sent;
  for (const RoundEffect& effect : effects_) {
    const auto* send = std::get_if<SendTo>(&effect);
    if (send != nullptr && send->stream == streams_.at(name)) sent.push_back(send->message);
  }
  return sent;
}

bool TestJob::Closed(const std::string& name) const {
  return std::any_of(effects_.begin(), effects_.end(), [&](const RoundEffect& effect) {
    const auto* close = std::get_if<CloseStreamTo>(&effect);
    return close != nullptr && close->stream == streams_.at(name);
  });
}

std::string TestJob::NameOf(StreamId stream) const {
  const auto found = names_.find(stream);
  return found == names_.end() ? "stream " + std::to_string(stream) : found->second;
}

JobSettings NodesFrom(int nodes_min, int nodes_max, int max_restarts) {
  JobSettings settings;
  settings.nodes_min = nodes_min;
  settings.nodes_max = nodes_max;
  settings.max_restarts = max_restarts;
  return settings;
}

}  // namespace muster
