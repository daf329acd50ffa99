#include "rendezvous/master_loop.h"

#include <pthread.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>

#include "rendezvous/unknown_job.h"

namespace muster {
namespace {

using namespace std::chrono_literals;

constexpr size_t kQueueMax = 4096;

// Waking so much later than asked means that the process was frozen or starved.
constexpr Duration kLate = 250ms;

// When a deadline has come, what is on its way to the queue has this long to be heard before
// anybody is judged: a process that was frozen until just now finds the messages of that time in
// its sockets.
constexpr Duration kHearFirst = 100ms;

// Agents that gave up on a frozen master have closed streams and opened others. Both are found at
// once, in any order: for so long a closed one is not taken for a loss.
constexpr Duration kHearAfterFreeze = 1s;

// What a violated invariant means in a debug build, unless the options say otherwise. Nothing at
// all in a release.
std::function<void(const std::string&)> DefaultViolation() {
#ifdef NDEBUG
  return nullptr;
#else
  return [](const std::string& violation) {
    std::fprintf(stderr, "master: an invariant does not hold: %s\n", violation.c_str());
    std::abort();
  };
#endif
}

// The node that an order is about; empty: none.
std::string NodeOf(const RoundEvent& event) {
  const auto* drain = std::get_if<DrainRequested>(&event);
  return drain == nullptr ? "" : drain->node_id;
}

// What a heartbeat brings about, and nothing else.
bool IsHeartbeat(const RoundEffects& effects) {
  const auto* send = effects.size() == 1 ? std::get_if<SendTo>(&effects.front()) : nullptr;
  return send != nullptr && std::holds_alternative<HeartbeatAck>(send->message);
}

}  // namespace

MasterLoop::MasterLoop(Clock* clock, AgentStreams* streams, Options options)
    : clock_(clock),
      streams_(streams),
      options_(std::move(options)),
      queue_(clock, kQueueMax),
      registry_(RegistryOptions()),
      keeper_(&registry_, WriteFunction()),
      writer_(MakeWriter()),
      thread_([this] { Run(); }) {
  pthread_setname_np(thread_.native_handle(), "master");
}

MasterLoop::~MasterLoop() { Stop(); }

JobRegistry::Options MasterLoop::RegistryOptions() {
  JobRegistry::Options options = options_.registry;
  if (!options.on_violation) options.on_violation = DefaultViolation();
  if (!options.wall_clock) options.wall_clock = WallClockMs;
  options.is_held = [this](JobRegistry::Serial job) { return keeper_.IsHeld(job); };
  return options;
}

RecordKeeper::Write MasterLoop::WriteFunction() {
  if (options_.store == nullptr) return nullptr;
  return [this](std::vector<RecordChange> changes) { writer_->Write(std::move(changes)); };
}

std::unique_ptr<StoreWriter> MasterLoop::MakeWriter() {
  if (options_.store == nullptr) return nullptr;
  return std::make_unique<StoreWriter>(clock_, options_.store,
                                       [this](absl::Status status, Duration took) {
                                         Post(StoreAnswered{std::move(status), took});
                                       });
}

void MasterLoop::Post(LoopEvent event) { queue_.Push(std::move(event)); }

void MasterLoop::Stop() {
  queue_.Close();
  if (thread_.joinable()) thread_.join();
}

void MasterLoop::Run() {
  registry_.Restore(clock_->Now(), options_.restored);
  keeper_.Restored(options_.restored);
  Time judge_at = kNever;  // kNever: no deadline has come
  size_t unheard = 0;      // messages that may have been under way when it came
  while (!queue_.closed()) {
    const Time deadline = has_retired_ ? kNever : registry_.NextDeadline();
    const bool is_due = deadline <= clock_->Now();
    if (!is_due) judge_at = kNever;
    if (is_due && judge_at == kNever) {
      judge_at = std::max(clock_->Now() + kHearFirst, hear_until_);
      unheard = open_.size();
    }
    const Time wake = is_due ? judge_at : deadline;
    const Time hear = broken_.empty() ? kNever : hear_until_;
    const Time looked_at = clock_->Now();
    std::optional<LoopEvent> event =
        queue_.Pop(std::min({wake, hear, watchers_.NextDeadline(), keeper_.NextDeadline()}));
    const Time now = clock_->Now();
    if (options_.leads && !has_retired_ && !options_.leads(now)) Handle(now, Retire{});
    const bool is_late = wake != kNever && now - wake > kLate;
    if (is_late) {
      judge_at = kNever;
      hear_until_ = now + kHearAfterFreeze;
      Do(now, registry_.Step(now, WokeUp{now - wake, now - looked_at}));
    }
    const bool event_came = event.has_value();
    if (event_came) Handle(now, std::move(*event));
    if (now >= hear_until_) TellBroken(now);
    // Each stream has one message in the queue at most: after so many all have been heard.
    unheard = event_came && unheard > 0 ? unheard - 1 : 0;
    if (now >= judge_at && unheard == 0) {
      judge_at = kNever;
      Do(now, registry_.Step(now, DeadlinePassed{}));
    }
    if (now >= keeper_.NextDeadline()) Do(now, {});
    TellIdle();
    if (now >= watchers_.NextDeadline()) TellWatchers(now);
  }
}

void MasterLoop::Handle(Time now, LoopEvent event) {
  std::visit([&](auto& kind) { Handle(now, std::move(kind)); }, event);
}

void MasterLoop::Handle(Time now, const StreamOpened& event) {
  if (has_retired_) return streams_->CloseAll();
  open_.insert(event.stream);
}

void MasterLoop::Handle(Time now, MessageArrived event) {
  // Reading and the end of a stream are told by different threads: what comes after the end counts
  // for nothing.
  if (open_.count(event.stream) == 0) return;
  const StreamId stream = event.stream;
  const auto* heartbeat = std::get_if<Heartbeat>(&event.message);
  const bool has_progress = heartbeat != nullptr && heartbeat->progress;
  std::vector<JobEffects> all = registry_.Step(now, RoundEvent(std::move(event)));
  const JobRegistry::Serial job = all.empty() ? 0 : all.front().serial;
  if (has_progress && !all.empty()) watchers_.Progressed(now, all.front().job_id);
  Do(now, std::move(all));
  if (keeper_.IsFull(job)) {
    delayed_.push_back(stream);
  } else {
    streams_->Resume(stream);
  }
}

void MasterLoop::Handle(Time now, const StreamBroken& event) {
  if (open_.erase(event.stream) != 0) broken_.push_back(event);
}

void MasterLoop::TellBroken(Time now) {
  for (const StreamBroken& event : std::exchange(broken_, {})) {
    Do(now, registry_.Step(now, event));
  }
}

void MasterLoop::Handle(Time now, TellWhenIdle event) {
  idle_callbacks_.push_back(std::move(event.callback));
}

void MasterLoop::Handle(Time now, const JobCommand& event) {
  const RoundMachine* machine = registry_.Find(event.job_id);
  absl::Status status;
  if (has_retired_) {
    status = absl::UnavailableError("this master serves no more");
  } else if (machine == nullptr) {
    status = UnknownJob(event.job_id, registry_.job_ids());
  } else if (machine->verdict()) {
    status = absl::FailedPreconditionError("job " + event.job_id +
                                           " has ended already: " + Sentence(machine->reason()));
  } else if (const std::string node = NodeOf(event.event);
             !node.empty() && machine->nodes().count(node) == 0) {
    status = absl::NotFoundError("there is no node '" + node + "' in job " + event.job_id);
  } else {
    std::vector<JobEffects> all = registry_.StepJob(now, event.job_id, event.event);
    if (event.answer) all.back().afterwards = [answer = event.answer] { answer(absl::OkStatus()); };
    return Do(now, std::move(all));
  }
  if (event.answer) event.answer(std::move(status));
}

void MasterLoop::Handle(Time now, WatchStatus event) {
  const StatusCallback callback = event.callback;
  if (!watchers_.Add(event.watcher, std::move(event.query), std::move(event.callback))) {
    callback(nullptr);
  }
}

void MasterLoop::Handle(Time now, const WatchResumed& event) { watchers_.Resume(event.watcher); }
void MasterLoop::Handle(Time now, const WatchEnded& event) { watchers_.Remove(event.watcher); }

void MasterLoop::Handle(Time now, const Ping& event) { event.callback(); }

void MasterLoop::Handle(Time now, const StoreAnswered& event) {
  (event.status.ok() ? store_counters_.written : store_counters_.failed).Add(event.took);
  if (event.status != store_trouble_) {
    if (options_.on_store_trouble) options_.on_store_trouble(event.status);
    watchers_.AllChanged();
  }
  if (store_trouble_.ok()) store_trouble_since_ = now - event.took;
  store_trouble_ = event.status;
  if (absl::IsFailedPrecondition(event.status)) {
    Handle(now, Retire{});
    if (options_.on_deposed) options_.on_deposed(event.status);
    return;
  }
  Perform(keeper_.Answered(now, event.status));
  if (!event.status.ok()) return;
  for (const StreamId stream : std::exchange(delayed_, {})) streams_->Resume(stream);
}

void MasterLoop::Handle(Time now, const Retire&) {
  has_retired_ = true;
  open_.clear();
  broken_.clear();
  streams_->CloseAll();
}

// What comes from a stream that is to be closed counts for nothing, though the close may have to
// wait.
void MasterLoop::Do(Time now, std::vector<JobEffects> all) {
  for (const JobEffects& job : all) {
    for (const RoundEffect& effect : job.effects) {
      if (const auto* close = std::get_if<CloseStreamTo>(&effect)) open_.erase(close->stream);
    }
  }
  Perform(keeper_.Pass(now, std::move(all)));
}

void MasterLoop::Perform(const std::vector<JobEffects>& all) {
  for (const JobEffects& job : all) {
    if (!IsHeartbeat(job.effects)) watchers_.Changed(job.job_id);
    for (const IncidentRecord& record : job.incidents) {
      if (options_.on_incident) options_.on_incident(job.job_id, job.instance, record);
    }
    for (const RoundEffect& effect : job.effects) {
      if (const auto* send = std::get_if<SendTo>(&effect)) {
        if (std::holds_alternative<Verdict>(send->message)) watchers_.Hurry();
        streams_->Send(send->stream, send->message);
      } else if (const auto* close = std::get_if<CloseStreamTo>(&effect)) {
        streams_->Close(close->stream);
      } else if (const auto* decided = std::get_if<Decided>(&effect)) {
        if (options_.on_decision) options_.on_decision(job.job_id, decided->reason);
      }
    }
    if (job.afterwards) job.afterwards();
  }
}

void MasterLoop::TellIdle() {
  if (idle_callbacks_.empty() || !open_.empty() || !registry_.idle() || !keeper_.empty()) return;
  for (const auto& callback : std::exchange(idle_callbacks_, {})) callback();
}

void MasterLoop::TellWatchers(Time now) {
  for (const auto& [query, watchers] : watchers_.TakeDue(now)) {
    auto report = std::make_shared<MasterReport>();
    report->jobs = registry_.Report(now, query.job_id, query.detail);
    if (report->jobs.empty()) report->job_ids = registry_.job_ids();
    report->heartbeat_lag = registry_.heartbeat_lag();
    report->store = store_counters_;
    if (!store_trouble_.ok()) {
      report->store_trouble = {std::string(store_trouble_.message()), now - store_trouble_since_};
    }
    for (const auto& [watcher, tell] : watchers) {
      if (!tell(report)) watchers_.Remove(watcher);
    }
  }
  watchers_.Told(now, clock_->Now());
}

}  // namespace muster
