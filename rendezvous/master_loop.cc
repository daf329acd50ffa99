#include "rendezvous/master_loop.h"

#include <pthread.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>

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

JobRegistry::Options Completed(JobRegistry::Options options) {
  if (!options.on_violation) options.on_violation = DefaultViolation();
  return options;
}

}  // namespace

MasterLoop::MasterLoop(Clock* clock, AgentStreams* streams, Options options)
    : clock_(clock),
      streams_(streams),
      options_(std::move(options)),
      queue_(clock, kQueueMax),
      registry_(Completed(options_.registry)),
      thread_([this] { Run(); }) {
  pthread_setname_np(thread_.native_handle(), "master");
}

MasterLoop::~MasterLoop() { Stop(); }

void MasterLoop::Post(LoopEvent event) { queue_.Push(std::move(event)); }

void MasterLoop::Stop() {
  queue_.Close();
  if (thread_.joinable()) thread_.join();
}

void MasterLoop::Run() {
  Time judge_at = kNever;  // kNever: no deadline has come
  while (!queue_.closed()) {
    const Time deadline = registry_.NextDeadline();
    const bool is_due = deadline <= clock_->Now();
    if (!is_due) judge_at = kNever;
    if (is_due && judge_at == kNever) judge_at = clock_->Now() + kHearFirst;
    const Time wake = is_due ? judge_at : deadline;
    std::optional<LoopEvent> event = queue_.Pop(wake);
    const Time now = clock_->Now();
    const bool is_late = wake != kNever && now - wake > kLate;
    if (is_late) {
      judge_at = kNever;
      Perform(registry_.Step(now, WokeUp{now - wake}));
    }
    if (event.has_value()) Handle(now, std::move(*event));
    if (now >= judge_at) {
      judge_at = kNever;
      Perform(registry_.Step(now, DeadlinePassed{}));
    }
    TellIdle();
  }
}

void MasterLoop::Handle(Time now, LoopEvent event) {
  std::visit([&](auto& kind) { Handle(now, std::move(kind)); }, event);
}

void MasterLoop::Handle(Time now, const StreamOpened& event) { open_.insert(event.stream); }

void MasterLoop::Handle(Time now, MessageArrived event) {
  // Reading and the end of a stream are told by different threads: what comes after the end counts
  // for nothing.
  if (open_.count(event.stream) == 0) return;
  const StreamId stream = event.stream;
  Perform(registry_.Step(now, RoundEvent(std::move(event))));
  streams_->Resume(stream);
}

void MasterLoop::Handle(Time now, const StreamBroken& event) {
  if (open_.erase(event.stream) != 0) Perform(registry_.Step(now, event));
}

void MasterLoop::Handle(Time now, TellWhenIdle event) {
  idle_callbacks_.push_back(std::move(event.callback));
}

void MasterLoop::Handle(Time now, const StopJob& event) {
  Perform(registry_.StepJob(now, event.job_id, StopRequested{event.who}));
}

void MasterLoop::Perform(const std::vector<JobEffects>& all) {
  for (const JobEffects& job : all) {
    for (const RoundEffect& effect : job.effects) {
      if (const auto* send = std::get_if<SendTo>(&effect)) {
        streams_->Send(send->stream, send->message);
      } else if (const auto* close = std::get_if<CloseStreamTo>(&effect)) {
        open_.erase(close->stream);
        streams_->Close(close->stream);
      } else if (const auto* decided = std::get_if<Decided>(&effect)) {
        if (options_.on_decision) options_.on_decision(job.job_id, decided->reason);
      }
    }
  }
}

void MasterLoop::TellIdle() {
  if (idle_callbacks_.empty() || !open_.empty() || !registry_.idle()) return;
  for (const auto& callback : std::exchange(idle_callbacks_, {})) callback();
}

}  // namespace muster
