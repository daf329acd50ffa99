#include "rendezvous/admission.h"

#include <algorithm>
#include <string>
#include <utility>

#include "rendezvous/round_limits.h"

namespace muster {
namespace {

Rejected BadSettings(const Hello& hello, std::string detail) {
  const Reason reason{ReasonCode::kRejectedSettings, hello.node_id, 0, 0, std::move(detail)};
  return {kExitBadSettings, Sentence(reason)};
}

// The id of a node that is here, other than `self`, and for which `matches` holds.
template <typename Predicate>
std::string OtherNode(const Roster& roster, const std::string& self, Predicate matches) {
  for (const auto& [id, node] : roster.nodes()) {
    if (id != self && node.attached() && !node.leaving && matches(node.hello)) return id;
  }
  return "";
}

std::optional<Rejected> RankRefusal(const Hello& hello, const Roster& roster) {
  const int rank = hello.fixed_group_rank;
  if (rank >= 0 && hello.settings.nodes_min != hello.settings.nodes_max) {
    return BadSettings(hello,
                       "a --node-rank needs a fixed number of nodes, not MIN:MAX: give --nnodes N");
  }
  if (rank >= hello.settings.nodes_max) {
    return BadSettings(hello, "its --node-rank is " + std::to_string(rank) + " in a job of " +
                                  std::to_string(hello.settings.nodes_max) +
                                  " nodes: ranks start at 0");
  }
  NodeCounts others = roster.counts();
  int holders = rank < 0 ? 0 : roster.HoldersOf(rank);
  if (const auto self = roster.nodes().find(hello.node_id); self != roster.nodes().end()) {
    const Node::Counted& own = self->second.counted;
    others -= own.counts;
    if (own.counts.ranked > 0 && own.fixed_rank == rank) --holders;
  }
  if (rank < 0 ? others.ranked > 0 : others.unranked > 0) {
    const std::string id = OtherNode(roster, hello.node_id, [rank](const Hello& other) {
      return (other.fixed_group_rank < 0) != (rank < 0);
    });
    return BadSettings(hello, (rank < 0 ? "it has no --node-rank and node " + id + " has one"
                                        : "it has a --node-rank and node " + id + " has none") +
                                  ": give one to all nodes or to none");
  }
  if (holders == 0) return std::nullopt;
  const std::string id = OtherNode(
      roster, hello.node_id, [rank](const Hello& other) { return other.fixed_group_rank == rank; });
  const Reason reason{ReasonCode::kRejectedRank, hello.node_id, rank, 0, "node " + id};
  return Rejected{kExitRefused, Sentence(reason)};
}

}  // namespace

Rejected Replaced(const std::string& node_id) {
  return {kExitRefused, Sentence({ReasonCode::kNodeReplaced, node_id}) +
                            ": where it is another node, give each a --node-id of its own"};
}

std::optional<Rejected> RefusalOf(const Hello& hello, const JobSettings* job,
                                  const Roster& roster) {
  if (hello.node_id.empty()) return BadSettings(hello, "it has no node id");
  if (hello.slots < 1) {
    return BadSettings(hello, "it has " + std::to_string(hello.slots) + " slots: give 1 or more");
  }
  if (const auto known = roster.nodes().find(hello.node_id); known != roster.nodes().end()) {
    const auto& retired = known->second.retired;
    if (std::count(retired.begin(), retired.end(), hello.incarnation) > 0) {
      return Replaced(hello.node_id);
    }
  }
  if (std::string error = DescribeError(hello.settings); !error.empty()) {
    return BadSettings(hello, std::move(error));
  }
  if (job != nullptr && *job != hello.settings) {
    std::string difference = DescribeDifference(*job, hello.settings);
    if (!difference.empty()) return BadSettings(hello, std::move(difference));
  }
  return RankRefusal(hello, roster);
}

}  // namespace muster
