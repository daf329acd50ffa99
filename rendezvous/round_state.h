#ifndef MUSTER_RENDEZVOUS_ROUND_STATE_H_
#define MUSTER_RENDEZVOUS_ROUND_STATE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "rendezvous/failure_memory.h"
#include "rendezvous/formation_gate.h"
#include "rendezvous/incident.h"
#include "rendezvous/messages.h"
#include "rendezvous/reason.h"
#include "rendezvous/roster.h"
#include "rendezvous/round_output.h"
#include "rendezvous/seat_table.h"
#include "rendezvous/wait_board.h"

namespace muster {

// While a master without memory waits for the members of a generation that runs.
struct Recovery {
  Time deadline = kNever;               // for its members to come back
  std::optional<Assignment> place;      // of one of them: those of the others fit it
  std::map<std::string, size_t> ranks;  // by node id, as far as they are known
};

// What an operator has asked for and the members have not done yet: come to a commit point and end.
// Then the nodes that are to go (Node::draining) are let go, or the job ends.
struct DrainOrder {
  std::string who;
  bool whole_job = false;
  Time deadline = kNever;       // workers that have not ended by then are stopped
  Duration patience{};          // from the request to the deadline; after a restart of the master
                                // from when the members are told again
  int64_t told_generation = 0;  // whose members have been told
};

// What the master knows of one job between two steps of its machine, for whoever wants to look at
// it, and what all parts of the machine do with it.
class RoundState {
 public:
  RoundPhase phase() const { return phase_; }
  int64_t generation() const { return generation_; }
  // The highest number of a generation that it gave or has heard of.
  int64_t last_generation() const { return std::max(generation_, highest_heard_); }
  int restarts_used() const { return restarts_used_; }
  const std::string& job_id() const { return job_id_; }
  uint64_t instance() const { return instance_; }
  const std::map<std::string, Node>& nodes() const { return roster_.nodes(); }
  const NodeCounts& counts() const { return roster_.counts(); }  // of nodes()
  size_t attached() const { return roster_.attached(); }         // nodes that are here
  // Whose stream it is, or nullptr.
  const Node* NodeOf(StreamId stream) const { return roster_.Of(stream); }
  // The places of the current generation by group rank; empty while none is running, stopping or
  // being recovered.
  const std::vector<Seat>& seats() const { return seats_.all(); }
  // Until when workers of members that are gone may be alive; in the past: none are.
  Time fenced_until() const { return seats_.LastFence(); }
  const std::optional<JobSettings>& settings() const { return settings_; }  // of the first Hello
  const std::optional<Verdict>& verdict() const { return verdict_; }
  const Reason& reason() const { return reason_; }                   // why the job is where it is
  const std::optional<DrainOrder>& drain() const { return drain_; }  // that is under way
  // What goes wrong in the current generation, and what went wrong when the one before ended.
  const Incident& incident() const { return incident_; }
  const Incident& last_incident() const { return last_incident_; }

  // True when the verdict is known and every node has acknowledged it or is lost: the job can be
  // forgotten.
  bool finished() const;

 protected:
  RoundState(std::string job_id, uint64_t instance, uint64_t seed)
      : job_id_(std::move(job_id)), instance_(instance), gate_(seed) {}

  void Changed();  // what outlives the master
  void Enter(RoundPhase phase);
  bool IsUnderWay() const;  // a generation is running or being recovered
  const Seat* SeatOf(const Node& node) const;
  void SetPhase(size_t rank, WorkersPhase phase);
  void Order(const Node& node, int64_t generation, const Reason& reason);
  void SetReason(const Reason& reason);

  std::string job_id_;
  uint64_t instance_;
  RoundPhase phase_ = RoundPhase::kForming;
  int64_t generation_ = 0;
  int64_t highest_heard_ = 0;  // of numbers that agents brought along, and of the instance before
  int restarts_used_ = 0;
  std::optional<JobSettings> settings_;
  Roster roster_;
  SeatTable seats_;
  WaitBoard waits_;
  std::optional<Verdict> verdict_;
  Reason reason_;
  Incident incident_;
  Incident last_incident_;
  std::set<std::string> lost_;  // nodes that vanished, or whose process did, in that incident
  FormationGate gate_;
  uint64_t arrivals_ = 0;

  std::optional<Leaving> last_leave_;
  Time formed_at_{};
  Recovery recovery_;
  std::optional<DrainOrder> drain_;
  FailureMemory failures_;
  Time mercy_until_ = Time::min();  // a stream that breaks before may be followed by another one
  Time exit_barrier_deadline_ = kNever;
  Time now_{};  // of the step in progress
  RoundOutput out_;
};

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_ROUND_STATE_H_
