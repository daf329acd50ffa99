#ifndef MUSTER_RENDEZVOUS_NODE_H_
#define MUSTER_RENDEZVOUS_NODE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "rendezvous/events.h"

namespace muster {

enum class RoundPhase {
  kForming,     // waiting for MIN nodes, the last call, or the back-off after quick failures
  kRecovering,  // a master without memory heard of a running generation and waits for its members
  kRunning,
  kStopping,  // a generation ends: waiting for its members' workers to stop
  kClosed,    // verdict known; waiting for acknowledgements
};

// What a node that does not run waits for.
enum class WaitKind {
  kNothing,
  kOthers,      // a member that has stopped: for the other members to stop
  kGeneration,  // the next generation
  kVerdict,     // its workers have succeeded: for those of the others
  kPlace,       // a generation runs without it
  kPardon,      // a generation runs without it because it failed too often
};
inline constexpr size_t kWaitKinds = 6;

// How many nodes are what; of one node each is 0 or 1.
struct NodeCounts {
  int candidates = 0;  // could be members of the next generation
  int newcomers = 0;   // candidates without a place in the present one
  int excluded = 0;    // candidates that others are preferred to
  int excluded_newcomers = 0;
  int leaving = 0;
  int former = 0;  // of the generation before, and not leaving
  int former_here = 0;
  int ranked = 0;    // here, not leaving, and with a fixed rank
  int unranked = 0;  // … without one
  std::array<int, kWaitKinds> waiting{};

  NodeCounts& operator+=(const NodeCounts& other) { return Add(other, 1); }
  NodeCounts& operator-=(const NodeCounts& other) { return Add(other, -1); }
  bool operator==(const NodeCounts&) const = default;

 private:
  NodeCounts& Add(const NodeCounts& other, int sign) {
    candidates += sign * other.candidates;
    newcomers += sign * other.newcomers;
    excluded += sign * other.excluded;
    excluded_newcomers += sign * other.excluded_newcomers;
    leaving += sign * other.leaving;
    former += sign * other.former;
    former_here += sign * other.former_here;
    ranked += sign * other.ranked;
    unranked += sign * other.unranked;
    for (size_t kind = 0; kind < kWaitKinds; ++kind) waiting[kind] += sign * other.waiting[kind];
    return *this;
  }
};

// What the master knows of one agent. Read by status, tests and invariants; written by the round
// machine only.
struct Node {
  std::string id;
  StreamId stream = 0;  // 0: lost (kept while its rank or its fencing matters)
  Hello hello;
  std::string address;       // as the others reach it; known once it is a member
  int group_rank = -1;       // in the current generation; -1: not a member (spare or waiting)
  int last_group_rank = -1;  // remembered for stable ranks
  WorkersPhase phase = WorkersPhase::kNone;  // of the current generation
  bool started = false;                      // WorkersStarted heard
  bool ready = false;                        // WorkersReady heard
  bool leaving = false;
  bool draining = false;      // it is to leave at the next commit point
  bool excluded = false;      // it failed too often lately: others are taken first
  bool acknowledged = false;  // the verdict
  int next_port = 0;
  Time last_heard{};
  Time heartbeat_due{};           // the next one, were there no delays on the way
  Duration heartbeat_lag{};       // how much later than that the last one came
  std::optional<int64_t> step;    // told with a heartbeat of this generation
  Time progress_at{};             // when that changed; meaningful with `step`
  std::string peer_address;       // where its stream comes from
  uint64_t arrival = 0;           // order of admission: who waits longest is taken first
  int64_t stale_generation = 0;   // an older generation whose workers it was told to stop; 0: none
  std::vector<uint64_t> retired;  // incarnations that newer ones replaced, the latest few

  // What it waits for, and whether it has been told.
  WaitKind wait_kind = WaitKind::kNothing;
  bool waits = false;
  bool knows = false;
  Reason wait_reason;
  Time wait_until = kNever;  // what `at_most` promised

  // Of the roster: how this node is counted at present, and whether it changed in this step.
  struct Counted {
    NodeCounts counts;
    int fixed_rank = -1;
    bool touched = false;
  } counted;

  bool attached() const { return stream != 0; }
  bool is_lost() const { return !attached() && !leaving && !acknowledged; }
  // Could be a member of the next generation.
  bool is_candidate() const { return attached() && !leaving && !draining && stale_generation == 0; }
};

inline NodeCounts CountsOf(const Node& node) {
  NodeCounts counts;
  const bool is_here = node.attached() && !node.leaving;
  const bool is_ranked = node.hello.fixed_group_rank >= 0;
  counts.candidates = node.is_candidate() ? 1 : 0;
  counts.newcomers = node.is_candidate() && node.group_rank < 0 ? 1 : 0;
  counts.excluded = node.is_candidate() && node.excluded ? 1 : 0;
  counts.excluded_newcomers = node.excluded ? counts.newcomers : 0;
  counts.leaving = node.leaving ? 1 : 0;
  counts.former = node.last_group_rank >= 0 && !node.leaving ? 1 : 0;
  counts.former_here = node.attached() ? counts.former : 0;
  counts.ranked = is_here && is_ranked ? 1 : 0;
  counts.unranked = is_here && !is_ranked ? 1 : 0;
  ++counts.waiting[static_cast<size_t>(node.wait_kind)];
  return counts;
}

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_NODE_H_
