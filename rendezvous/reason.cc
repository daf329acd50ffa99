#include "rendezvous/reason.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <string>

#include "rendezvous/settings.h"

namespace muster {
namespace {

struct Name {
  ReasonCode code;
  const char* label;
};

constexpr std::array kNames = {
    Name{ReasonCode::kNothingYet, "nothing_yet"},
    Name{ReasonCode::kWaitingForNodes, "waiting_for_nodes"},
    Name{ReasonCode::kLastCall, "last_call"},
    Name{ReasonCode::kBackingOff, "backing_off"},
    Name{ReasonCode::kRecovering, "recovering"},
    Name{ReasonCode::kGenerationStarted, "generation_started"},
    Name{ReasonCode::kNodeJoined, "node_joined"},
    Name{ReasonCode::kNodeReplaced, "node_replaced"},
    Name{ReasonCode::kNodeLeft, "node_left"},
    Name{ReasonCode::kNodeLostStream, "node_lost_stream"},
    Name{ReasonCode::kNodeLostSilence, "node_lost_silence"},
    Name{ReasonCode::kWorkerFailed, "worker_failed"},
    Name{ReasonCode::kNewcomer, "newcomer"},
    Name{ReasonCode::kStopping, "stopping"},
    Name{ReasonCode::kJobSucceeded, "job_succeeded"},
    Name{ReasonCode::kJobFailedBudget, "job_failed_budget"},
    Name{ReasonCode::kJobFailedFatal, "job_failed_fatal"},
    Name{ReasonCode::kJobFailedJoinTimeout, "job_failed_join_timeout"},
    Name{ReasonCode::kJobStopped, "job_stopped"},
    Name{ReasonCode::kRejectedSettings, "rejected_settings"},
    Name{ReasonCode::kRejectedRank, "rejected_rank"},
    Name{ReasonCode::kAddressGuessed, "address_guessed"},
    Name{ReasonCode::kNodeStuck, "node_stuck"},
    Name{ReasonCode::kWorkersVanished, "workers_vanished"},
    Name{ReasonCode::kSpare, "spare"},
    Name{ReasonCode::kWaitingForRestart, "waiting_for_restart"},
    Name{ReasonCode::kMemberMissing, "member_missing"},
    Name{ReasonCode::kJobAbandoned, "job_abandoned"},
    Name{ReasonCode::kStaleWorkers, "stale_workers"},
    Name{ReasonCode::kNotAcknowledged, "not_acknowledged"},
    Name{ReasonCode::kFinishing, "finishing"},
    Name{ReasonCode::kJobFailedStart, "job_failed_start"},
    Name{ReasonCode::kDraining, "draining"},
    Name{ReasonCode::kNodeDrained, "node_drained"},
    Name{ReasonCode::kDrainCut, "drain_cut"},
    Name{ReasonCode::kJobDrained, "job_drained"},
    Name{ReasonCode::kJobCutShort, "job_cut_short"},
    Name{ReasonCode::kWaitingForCommit, "waiting_for_commit"},
    Name{ReasonCode::kWaitingForUnit, "waiting_for_unit"},
    Name{ReasonCode::kExcluded, "excluded"},
    Name{ReasonCode::kMasterWasAway, "master_was_away"},
    Name{ReasonCode::kRebuilding, "rebuilding"},
    Name{ReasonCode::kNoRoom, "no_room"},
    Name{ReasonCode::kJobLeftAlone, "job_left_alone"},
    Name{ReasonCode::kWorkersFenced, "workers_fenced"},
};

// In the order of the enum and complete.
constexpr bool IsIndexed() {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i].code != static_cast<ReasonCode>(i)) return false;
  }
  return kNames.back().code == kLastReasonCode;
}
static_assert(IsIndexed());

std::string Milliseconds(int64_t count) { return DurationText(std::chrono::milliseconds(count)); }

std::string Number(int64_t number) { return std::to_string(number); }

std::string Counted(int64_t number, const char* singular, const char* plural) {
  return Number(number) + " " + (number == 1 ? singular : plural);
}

std::string AfterColon(const std::string& detail) { return detail.empty() ? "" : ": " + detail; }

std::string Missing(const std::string& who) { return who.empty() ? "" : "; missing: " + who; }

// Why the job waits or goes on.
std::string ProgressSentence(const Reason& r) {
  switch (r.code) {
    case ReasonCode::kNothingYet:
      return "no node has come yet";
    case ReasonCode::kWaitingForNodes:
      return "waiting for nodes: " + Number(r.a) + " of " + Number(r.b) + " are here" +
             Missing(r.detail);
    case ReasonCode::kLastCall:
      return "last call: " + Counted(r.a, "node is in", "nodes are in") + ", up to " + Number(r.b) +
             " may come";
    case ReasonCode::kBackingOff:
      return "backing off for " + Milliseconds(r.b) + " after " +
             Counted(r.a, "quick failure", "quick failures") + " in a row";
    case ReasonCode::kRecovering:
      return "recovering: " + Number(r.a) + " of " + Number(r.b) +
             " members of the running generation are back" + Missing(r.detail);
    case ReasonCode::kStopping:
      return "stopping: " + Number(r.a) + " of " + Number(r.b) + " members have stopped";
    case ReasonCode::kFinishing:
      return "finishing: the workers of " + Number(r.a) + " of " + Counted(r.b, "node", "nodes") +
             " are done";
    case ReasonCode::kSpare:
      return "spare: " + Counted(r.a, "node is in", "nodes are in") + ", as many as may be";
    case ReasonCode::kWaitingForRestart:
      return "waiting to be taken in when generation " + Number(r.a) + " ends";
    case ReasonCode::kWaitingForCommit:
      return "waiting to be taken in at the next commit point of generation " + Number(r.a);
    case ReasonCode::kWaitingForUnit:
      return "spare: " + Counted(r.a, "node is in", "nodes are in") + ", and the next " +
             Number(r.b) + " are taken together";
    case ReasonCode::kExcluded:
      return "spare: failed " + Counted(r.a, "time", "times") + " within " + Milliseconds(r.b) +
             ", others are taken first";
    case ReasonCode::kDraining:
      return "draining: the workers of " + Number(r.a) + " of " + Counted(r.b, "node", "nodes") +
             " have come to a commit point and ended";
    case ReasonCode::kMasterWasAway:
      return "the master did not run for up to " + Milliseconds(r.a) +
             ": agents that gave it up have " + Milliseconds(r.b) + " to come back";
    case ReasonCode::kRebuilding:
      return "listening for members of a generation that a master before this one may have formed";
    case ReasonCode::kGenerationStarted:
      return "generation " + Number(r.a) + " started with " + Counted(r.b, "node", "nodes");
    default:
      return "";
  }
}

// What happened to one node.
std::string NodeSentence(const Reason& r) {
  const std::string node = "node " + r.subject;
  switch (r.code) {
    case ReasonCode::kNodeJoined:
      return node + " joined";
    case ReasonCode::kNodeReplaced:
      return "a newer process took the place of " + node;
    case ReasonCode::kNodeLeft:
      return node + " left" + AfterColon(r.detail);
    case ReasonCode::kNodeDrained:
      return node + " is drained by " + r.detail;
    case ReasonCode::kNodeLostStream:
      return node + " is lost: its connection broke";
    case ReasonCode::kNodeLostSilence:
      return node + " is lost: silent for " + Milliseconds(r.a);
    case ReasonCode::kNodeStuck:
      return node + " is given up: its workers did not stop within " + Milliseconds(r.a);
    case ReasonCode::kWorkerFailed:
      return "rank " + Number(r.a) + " on " + node + " failed" + AfterColon(r.detail);
    case ReasonCode::kWorkersVanished:
      return node + " no longer runs its workers";
    case ReasonCode::kWorkersFenced:
      return node + " gave up its workers: no master answered it for --master-loss-timeout";
    case ReasonCode::kNotAcknowledged:
      return node + " did not acknowledge the verdict within " + Milliseconds(r.a);
    case ReasonCode::kNewcomer:
      return node + " is taken in: a new generation begins";
    case ReasonCode::kMemberMissing:
      return "group rank " + Number(r.a) + " did not come back within " + Milliseconds(r.b);
    case ReasonCode::kStaleWorkers:
      return "workers of generation " + Number(r.a) + " belong to the past: the job is at " +
             Number(r.b);
    case ReasonCode::kRejectedSettings:
    case ReasonCode::kNoRoom:
      return node + " is refused" + AfterColon(r.detail);
    case ReasonCode::kRejectedRank:
      return node + " is refused: rank " + Number(r.a) + " is taken by " + r.detail +
             ": give each node a --node-rank of its own";
    case ReasonCode::kAddressGuessed:
      return "the address of " + node + " is a guess" + AfterColon(r.detail);
    default:
      return "";
  }
}

// How the job ended.
std::string EndSentence(const Reason& r) {
  switch (r.code) {
    case ReasonCode::kJobSucceeded:
      return "job succeeded: all workers exited with 0";
    case ReasonCode::kJobFailedBudget:
      return "job failed: " + r.detail + "; " +
             (r.b == 0
                  ? "no restarts are allowed"
                  : Number(r.a) + " of " + Counted(r.b, "restart is used", "restarts are used"));
    case ReasonCode::kJobFailedFatal:
      return "job failed: " + r.detail + "; no restart can mend it";
    case ReasonCode::kJobFailedStart:
      return "job failed: " + r.detail + "; " + Counted(r.a, "quick failure", "quick failures") +
             " in a row, and --max-start-failures is " + Number(r.b);
    case ReasonCode::kJobFailedJoinTimeout:
      return "the rendezvous timed out: " + Number(r.a) + " of " + Counted(r.b, "node", "nodes") +
             " had come after " + r.detail + Missing(r.subject) +
             ": start the others, or allow more time (" + kJoinTimeoutOption + ")";
    case ReasonCode::kJobStopped:
      return "job stopped by " + (r.subject.empty() ? "an operator" : r.subject);
    case ReasonCode::kDrainCut:
      return "drained by " + r.subject + ", and no commit point came within " + Milliseconds(r.a) +
             ": the workers are stopped";
    case ReasonCode::kJobDrained:
      return "job drained by " + r.subject + ": its workers came to a commit point and ended";
    case ReasonCode::kJobCutShort:
      return "job ended while it was drained by " + r.subject + AfterColon(r.detail);
    case ReasonCode::kJobAbandoned:
      return "job ended: every node has left" + AfterColon(r.detail);
    case ReasonCode::kJobLeftAlone:
      return "job given up: none of its nodes was here for " + r.detail + " (--job-idle-timeout)";
    default:
      return "";
  }
}

}  // namespace

const char* Label(ReasonCode code) { return kNames[static_cast<size_t>(code)].label; }

std::string Sentence(const Reason& reason) {
  for (const auto& describe : {ProgressSentence, NodeSentence, EndSentence}) {
    if (std::string text = describe(reason); !text.empty()) return text;
  }
  return Label(reason.code);
}

}  // namespace muster
