#include "worker_sdk/run_plan.h"

namespace muster {

std::vector<RunStep> StepsAtStart(const RunFacts& facts) {
  if (!facts.has_file) return {RunStep::kReady, RunStep::kBody};
  return {RunStep::kLoad, RunStep::kReady, RunStep::kBody};
}

std::vector<RunStep> StepsAfter(BodyEnd end, const RunFacts& facts) {
  std::vector<RunStep> steps;
  switch (end) {
    case BodyEnd::kReturned:
    case BodyEnd::kDrained:
      if (facts.has_file) steps = {RunStep::kSave, RunStep::kWait};
      steps.push_back(end == BodyEnd::kReturned ? RunStep::kFinish : RunStep::kEndDrained);
      return steps;
    case BodyEnd::kGroupLost:
      if (facts.can_rejoin) {
        return {RunStep::kQuiesce, RunStep::kRejoin, RunStep::kRollBack, RunStep::kBody};
      }
      break;
    case BodyEnd::kFailedOnAll:
      return {RunStep::kRethrow};
    case BodyEnd::kFailedAlone:
      steps = {RunStep::kTellPeers};
      break;
  }
  if (facts.has_file && facts.leader) steps.push_back(RunStep::kSaveRemembered);
  steps.push_back(RunStep::kRethrow);
  return steps;
}

}  // namespace muster
