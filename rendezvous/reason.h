#ifndef MUSTER_RENDEZVOUS_REASON_H_
#define MUSTER_RENDEZVOUS_REASON_H_

#include <cstdint>
#include <string>

namespace muster {

// Why a decision was taken. The name is the metric label; Sentence() is the log line, the status
// line and the report.
enum class ReasonCode {
  kNothingYet,         // no node has come
  kWaitingForNodes,    // a of b nodes; detail: who is missing, as far as is known
  kLastCall,           // a nodes are in, up to b may come
  kBackingOff,         // a quick failures in a row, b milliseconds
  kRecovering,         // a of b members of the running generation are back; detail: likewise
  kGenerationStarted,  // generation a of b nodes
  kNodeJoined,         // subject: node
  kNodeReplaced,       // subject: node; a newer incarnation
  kNodeLeft,           // subject: node; detail: why
  kNodeLostStream,     // subject: node; its connection broke
  kNodeLostSilence,    // subject: node; silent for a milliseconds
  kWorkerFailed,       // subject: node; a = rank; detail: exit status
  kNewcomer,           // subject: node; a generation ends to take it in
  kStopping,           // a of b members have stopped
  kJobSucceeded,
  kJobFailedBudget,       // a restarts used of b; detail: the last failure
  kJobFailedFatal,        // detail: the failure that no restart can mend
  kJobFailedJoinTimeout,  // a of b nodes after detail; subject: who is missing
  kJobStopped,            // subject: who
  kRejectedSettings,      // subject: node; detail: difference
  kRejectedRank,          // subject: node; a = the rank that is taken; detail: by whom
  kAddressGuessed,        // subject: node; detail: chosen address and why it is a guess
  kNodeStuck,             // subject: node; its workers did not stop within a milliseconds
  kWorkersVanished,       // subject: node; its workers are gone though nobody ordered it
  kSpare,                 // a nodes are in, as many as may be
  kWaitingForRestart,     // a newcomer is taken in when generation a ends
  kMemberMissing,         // group rank a did not come back within b milliseconds
  kJobAbandoned,          // every node has left; detail: the last one's cause
  kStaleWorkers,          // workers of generation a belong to the past; generation b is current
  kNotAcknowledged,       // subject: node; it did not acknowledge the verdict within a milliseconds
  kFinishing,             // the workers of a of b members have all exited with 0
  kJobFailedStart,        // a quick failures in a row, b may be; detail: the last failure
  kDraining,              // the workers of a of b members have ended at a commit point
  kNodeDrained,           // subject: node; detail: by whom
  kDrainCut,              // subject: who drains; the workers have come to no commit point in a ms
  kJobDrained,            // subject: who
  kJobCutShort,           // subject: who drained it; detail: what came between
  kWaitingForCommit,      // a newcomer is taken in at the next commit point of generation a
  kWaitingForUnit,        // a nodes are in; b more are needed for a multiple of node_unit
  kExcluded,              // a failures within b milliseconds: other nodes are taken first
  kMasterWasAway,         // the master did not run for a ms: agents have b ms to come back
  kRebuilding,            // agents were attached before: members of a generation may come
  kNoRoom,                // subject: node; detail: which limit of the master, what to do
  kJobLeftAlone,          // no agent was here for detail
  kWorkersFenced,         // subject: node; no master answered it, and it stopped its workers
};

inline constexpr ReasonCode kLastReasonCode = ReasonCode::kWorkersFenced;

struct Reason {
  ReasonCode code = ReasonCode::kNothingYet;
  std::string subject = {};
  int64_t a = 0;
  int64_t b = 0;
  std::string detail = {};

  bool operator==(const Reason&) const = default;
};

// snake_case name of the code: "waiting_for_nodes".
const char* Label(ReasonCode code);

// The option that the sentence of kJobFailedJoinTimeout names.
inline constexpr char kJoinTimeoutOption[] = "--rdzv-conf join_timeout";

// One sentence for people: "waiting for nodes: 1 of 2 are here".
std::string Sentence(const Reason& reason);

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_REASON_H_
