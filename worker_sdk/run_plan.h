#ifndef MUSTER_WORKER_SDK_RUN_PLAN_H_
#define MUSTER_WORKER_SDK_RUN_PLAN_H_

#include <vector>

// What run() does before its body, and after each end of it. Pure.
namespace muster {

enum class BodyEnd {
  kReturned,
  kDrained,      // commit() left it: all ranks are to save and end
  kGroupLost,    // PeerLost, Timeout
  kFailedOnAll,  // a checkpoint could not be written or read: every rank knows
  kFailedAlone,  // anything else that was thrown
};

enum class RunStep {
  kLoad,   // collective: the newest checkpoint
  kReady,  // tell the agent
  kBody,
  kSave,            // collective, unless the last save is of this commit
  kWait,            // for what is being written; collective
  kTellPeers,       // leave the group with the reason, so that nobody waits for this rank
  kSaveRemembered,  // rank 0: the last remembered commit, if it is newer than the file
  kQuiesce,         // tell the agent that the group is left
  kRejoin,          // the next generation's group
  kRollBack,        // to the last remembered commit
  kFinish,          // return true
  kEndDrained,      // return false
  kRethrow,
};

struct RunFacts {
  bool has_file = false;    // checkpoints are wanted
  bool leader = false;      // rank 0
  bool can_rejoin = false;  // groups can be changed within the process
};

std::vector<RunStep> StepsAtStart(const RunFacts& facts);
std::vector<RunStep> StepsAfter(BodyEnd end, const RunFacts& facts);

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_RUN_PLAN_H_
