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

std::optional<Rejected> RankRefusal(const Hello& hello, const std::map<std::string, Node>& nodes) {
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
  for (const auto& [id, other] : nodes) {
    if (id == hello.node_id || !other.attached() || other.leaving) continue;
    if ((other.hello.fixed_group_rank < 0) != (rank < 0)) {
      return BadSettings(hello, (rank < 0 ? "it has no --node-rank and node " + id + " has one"
                                          : "it has a --node-rank and node " + id + " has none") +
                                    ": give one to all nodes or to none");
    }
    if (rank >= 0 && other.hello.fixed_group_rank == rank) {
      const Reason reason{ReasonCode::kRejectedRank, hello.node_id, rank, 0, "node " + id};
      return Rejected{kExitRefused, Sentence(reason)};
    }
  }
  return std::nullopt;
}

}  // namespace

Rejected Replaced(const std::string& node_id) {
  return {kExitRefused, Sentence({ReasonCode::kNodeReplaced, node_id}) +
                            ": where it is another node, give each a --node-id of its own"};
}

std::optional<Rejected> RefusalOf(const Hello& hello, const JobSettings* job,
                                  const std::map<std::string, Node>& nodes) {
  if (hello.node_id.empty()) return BadSettings(hello, "it has no node id");
  if (hello.slots < 1) {
    return BadSettings(hello, "it has " + std::to_string(hello.slots) + " slots: give 1 or more");
  }
  if (const auto known = nodes.find(hello.node_id); known != nodes.end()) {
    const auto& retired = known->second.retired;
    if (std::count(retired.begin(), retired.end(), hello.incarnation) > 0) {
      return Replaced(hello.node_id);
    }
  }
  if (std::string error = DescribeError(hello.settings); !error.empty()) {
    return BadSettings(hello, std::move(error));
  }
  if (job != nullptr) {
    std::string difference = DescribeDifference(*job, hello.settings);
    if (!difference.empty()) return BadSettings(hello, std::move(difference));
  }
  return RankRefusal(hello, nodes);
}

}  // namespace muster
