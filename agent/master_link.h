#ifndef MUSTER_AGENT_MASTER_LINK_H_
#define MUSTER_AGENT_MASTER_LINK_H_

#include <cstdint>
#include <deque>
#include <random>

#include "base/time.h"
#include "rendezvous/rendezvous_client.h"
#include "rendezvous/settings.h"

namespace muster {

// The part of the supervisor that keeps the connection to the master: when to open a stream again,
// when to send a heartbeat, when silence means that the stream is dead, and when a master last
// vouched for this node. Pure; decides only when.
class MasterLink {
 public:
  // `heartbeats` is false for the in-process master of a single-node job: it cannot be lost.
  MasterLink(const JobSettings& settings, bool heartbeats, uint64_t seed);

  enum class Action { kNone, kOpen, kHeartbeat };

  // The stream was opened and a Hello sent on it.
  void Opened(Time now);
  // Anything came from the master.
  void Heard(Time now);
  // A HeartbeatAck came.
  void Acknowledged(uint64_t sequence);
  // The stream ended: kOpen is due after a back-off (0.1 s doubling to 2 s, with jitter).
  void Lost(Time now, Obstacle obstacle = Obstacle::kNone);
  // No more action: the node is done with the master.
  void Close();

  // What is due at `now`. kHeartbeat: send one with NextSequence(now).
  Action Due(Time now) const;
  // kOpen is due because a whole lease has passed without an answer.
  bool is_silent(Time now) const;
  uint64_t NextSequence(Time now);
  Time NextDeadline() const;

  // When the last message was sent that the master is known to have received; the base of the
  // master-loss time-out.
  Time vouched_at() const { return vouched_at_; }
  // A master has spoken to this node at some time.
  bool has_heard() const { return has_heard_; }
  // What keeps this node from a master will stay. While none has ever spoken: it may not listen
  // where the master belongs, or every attempt for 10 s met another protocol there, or every
  // attempt for 30 s (and two leases) met a listener that did not answer, which may also be a
  // master that is stopped, or what the two say to each other is refused. Later: the third stream
  // in a row was refused, each within a minute of the one before; workers that only a master which
  // had not spoken yet has refused run on.
  bool is_blocked(Time now, bool has_workers) const;

 private:
  enum class State { kIdle, kOpen, kBackingOff, kClosed };
  struct Sent {
    uint64_t sequence;
    Time at;
  };

  Duration lease_;
  Duration interval_;
  bool heartbeats_;
  std::minstd_rand random_;
  State state_ = State::kIdle;
  int attempts_ = 0;
  uint64_t sequence_ = 0;
  std::deque<Sent> unacknowledged_;  // Hello counts as sequence 0
  Time heartbeat_at_ = kNever;
  Time reopen_at_ = kNever;
  Time vouched_at_{};
  bool heard_on_this_stream_ = false;
  bool has_heard_ = false;
  int refusals_ = 0;  // in a row
  Time refused_at_{};
  Obstacle obstacle_ = Obstacle::kNone;  // of the last attempt
  Time obstacle_since_{};
};

}  // namespace muster

#endif  // MUSTER_AGENT_MASTER_LINK_H_
