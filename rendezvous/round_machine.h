#ifndef MUSTER_RENDEZVOUS_ROUND_MACHINE_H_
#define MUSTER_RENDEZVOUS_ROUND_MACHINE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/time.h"
#include "rendezvous/messages.h"
#include "rendezvous/reason.h"

namespace muster {

// One stream of one agent, named by the shell; never used twice in a process.
using StreamId = uint64_t;

// ── Events ───────────────────────────────────────────────────────────────────────────────────────────────────────────

// `peer_address` is where the stream comes from (IP without port, v4-mapped addresses unmapped; empty in process).
struct MessageArrived {
  StreamId stream = 0;
  AgentMessage message;
  std::string peer_address;
};

// The agent half-closed its stream (after a Verdict: its acknowledgement) or the connection broke.
struct StreamBroken {
  StreamId stream = 0;
  bool half_closed = false;
};

// The deadline that NextDeadline() named has come. A step with it at any other moment changes nothing.
struct DeadlinePassed {};

// The shell noticed that the process did not run for a while (stopped, suspended, overloaded): nobody is judged by the
// silence of that time.
struct WokeUp {
  Duration missed{};
};

// An operator ends the job.
struct StopRequested {
  std::string who;
};

using RoundEvent =
    std::variant<MessageArrived, StreamBroken, DeadlinePassed, WokeUp, StopRequested>;

// ── Effects, to be performed in order ────────────────────────────────────────────────────────────────────────────────

struct SendTo {
  StreamId stream = 0;
  MasterMessage message;
};

// End the stream with OK (after Rejected, or when a newer incarnation replaced it).
struct CloseStreamTo {
  StreamId stream = 0;
};

// A decision worth a log line.
struct Decided {
  Reason reason;
};

using RoundEffect = std::variant<SendTo, CloseStreamTo, Decided>;
using RoundEffects = std::vector<RoundEffect>;

// ── State that tests, status and invariants read ─────────────────────────────────────────────────────────────────────

enum class RoundPhase {
  kForming,     // waiting for MIN nodes, the last call, or the back-off after quick failures
  kRecovering,  // a master without memory heard of a running generation and waits for its members
  kRunning,
  kStopping,    // a generation ends: waiting for its members' workers to stop
  kClosed,      // verdict known; waiting for acknowledgements
};

struct Node {
  std::string id;
  StreamId stream = 0;  // 0: lost (kept while its rank or its fencing matters)
  Hello hello;
  std::string address;  // as the others reach it
  int group_rank = -1;  // in the current generation; -1: not a member (spare or waiting)
  int last_group_rank = -1;  // remembered for stable ranks
  WorkersPhase phase = WorkersPhase::kNone;  // of the current generation
  bool started = false;  // WorkersStarted heard
  bool leaving = false;
  bool acknowledged = false;  // the verdict
  int next_port = 0;
  Time last_heard{};
};

// One job at the master: who is a member, which ranks they hold, when a generation begins and ends, and how the job ends.
//
// Pure: no clock, socket, thread or log. Single-threaded. `now` never decreases from step to step.
// State × event table and protocol: docs/RENDEZVOUS.md (checked by //tests/rendezvous:round_machine_test).
class RoundMachine {
 public:
  // `instance` numbers the job among jobs with the same id at this master. `seed` feeds the jitter of the restart back-off.
  RoundMachine(std::string job_id, uint64_t instance, uint64_t seed);

  // The effects are complete: the shell adds nothing and drops nothing.
  RoundEffects Step(Time now, const RoundEvent& event);

  // When Step must be called with DeadlinePassed; kNever when only events can change something.
  Time NextDeadline() const;

  RoundPhase phase() const { return phase_; }
  int64_t generation() const { return generation_; }
  int restarts_used() const { return restarts_used_; }
  const std::string& job_id() const { return job_id_; }
  uint64_t instance() const { return instance_; }
  const std::map<std::string, Node>& nodes() const { return nodes_; }
  const std::optional<JobSettings>& settings() const { return settings_; }  // of the first Hello
  const std::optional<Verdict>& verdict() const { return verdict_; }
  const Reason& reason() const { return reason_; }  // why the job is where it is

  // True when the verdict is known and every node has acknowledged it or is lost: the job can be forgotten.
  bool finished() const;

 private:
  // The implementer of this file completes the private part.
  std::string job_id_;
  uint64_t instance_;
  RoundPhase phase_ = RoundPhase::kForming;
  int64_t generation_ = 0;
  int restarts_used_ = 0;
  std::optional<JobSettings> settings_;
  std::map<std::string, Node> nodes_;
  std::optional<Verdict> verdict_;
  Reason reason_;
};

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_ROUND_MACHINE_H_
