#ifndef MUSTER_RENDEZVOUS_ROSTER_H_
#define MUSTER_RENDEZVOUS_ROSTER_H_

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "rendezvous/deadlines.h"
#include "rendezvous/node.h"
#include "rendezvous/rank_set.h"

namespace muster {

// The nodes that a job knows of, with what the round machine asks of all of them after every
// message: how many are what, who has been silent for longest, who has changed in this step.
//
// Who changes a node says so with Touch (before anything is asked), or TouchAll after a sweep.
class Roster {
 public:
  Roster() = default;
  Roster(Roster&&) = default;  // the nodes stay where they are
  Roster& operator=(Roster&&) = default;

  const std::map<std::string, Node>& nodes() const { return nodes_; }
  std::map<std::string, Node>& nodes() { return nodes_; }

  Node* Find(const std::string& id);
  Node* Of(StreamId stream);
  const Node* Of(StreamId stream) const;
  // The node of that id, made when it is new.
  Node& Make(const std::string& id) { return nodes_[id]; }
  void Erase(const Node& node);
  void EraseLost();  // all that are not attached

  void Bind(Node& node, StreamId stream);
  void Unbind(Node& node);  // it is not attached any more
  void Heard(Node& node, Time now);
  // The master did not run for so long, until `now`.
  void Shift(Duration missed, Time now);

  // What it waits for; it has not been told yet.
  void SetWaitKind(Node& node, WaitKind kind);

  void Touch(Node& node);
  void TouchAll();
  // Those touched since the last call.
  std::vector<Node*> TakeTouched();

  const NodeCounts& counts() const { return counts_; }
  size_t attached() const { return streams_.size(); }
  // The fixed ranks that nodes hold that are here.
  const RankSet& held_ranks() const { return held_ranks_; }
  // Nodes of the generation before that are not here and have not left.
  const std::set<std::string>& absent() const { return absent_; }
  // How many nodes that are here hold this fixed rank.
  int HoldersOf(int fixed_rank) const;
  // When the node that has been silent for longest was heard last; kNever when none is attached.
  Time earliest_heard() const { return heard_.earliest(); }
  StreamId most_silent() const { return heard_.first(); }

 private:
  void Count(Node& node);
  void Uncount(const Node& node);

  std::map<std::string, Node> nodes_;
  std::unordered_map<StreamId, Node*> streams_;
  Deadlines heard_;  // by stream
  NodeCounts counts_;
  std::unordered_map<int, int> rank_holders_;
  RankSet held_ranks_;
  std::set<std::string> absent_;
  std::vector<Node*> touched_;
  bool all_touched_ = false;
};

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_ROSTER_H_
