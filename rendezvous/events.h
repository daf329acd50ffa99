#ifndef MUSTER_RENDEZVOUS_EVENTS_H_
#define MUSTER_RENDEZVOUS_EVENTS_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/time.h"
#include "rendezvous/messages.h"
#include "rendezvous/reason.h"

// What goes into the round machine and what comes out of it: two closed sets.

namespace muster {

// One stream of one agent, named by the shell; never used twice in a process and never 0.
using StreamId = uint64_t;

// ── Events ─────────────────────────────────────────────────────────────────────────────────────

// `peer_address` is where the stream comes from (IP without port, v4-mapped addresses unmapped;
// empty in process).
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

// The deadline that NextDeadline() named has come. A step with it at any other moment changes
// nothing. Nobody is ever judged by time in any other step, so a shell that was away reports WokeUp
// before it reports a deadline.
struct DeadlinePassed {};

// The shell noticed that the process did not run for a while (stopped, suspended, overloaded):
// nobody is judged by the silence of that time.
struct WokeUp {
  Duration missed{};  // beyond the moment that it had asked for
  // Since it last looked. Agents that waited so long for an answer may have opened other streams.
  Duration asleep{};
};

// An operator ends the job.
struct StopRequested {
  std::string who;
};

// An operator takes a node out, or all of them (`node_id` empty), at the next commit point. Who has
// not come to one after `at_most` (zero: after join_timeout) is stopped.
struct DrainRequested {
  std::string node_id;
  std::string who;
  Duration at_most{};
};

// No agent has been here for so long that the master gives the job up.
struct LeftAlone {
  Duration idle{};
};

using RoundEvent = std::variant<MessageArrived, StreamBroken, DeadlinePassed, WokeUp, StopRequested,
                                DrainRequested, LeftAlone>;

// ── Effects, to be performed in order ──────────────────────────────────────────────────────────

// What a master must remember of the job (RoundMachine::Record()) has changed. It comes first:
// where masters have a store, the effects after it wait until the record is there to stay. Once per
// step at most, and never for a heartbeat.
struct Persist {};

// What is sent to a stream that has ended meanwhile is dropped: the machine hears of the end and
// acts on that.
struct SendTo {
  StreamId stream = 0;
  MasterMessage message;
};

// End the stream with OK: after Rejected or a half-close, when the agent was silent for too long,
// or when a newer stream took its place. Closing a stream that has ended meanwhile is not an error.
struct CloseStreamTo {
  StreamId stream = 0;
};

// A decision worth a log line.
struct Decided {
  Reason reason;
};

using RoundEffect = std::variant<Persist, SendTo, CloseStreamTo, Decided>;
using RoundEffects = std::vector<RoundEffect>;

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_EVENTS_H_
