#ifndef MUSTER_AGENT_NODE_STATUS_H_
#define MUSTER_AGENT_NODE_STATUS_H_

#include <string>

#include "agent/supervisor_machine.h"
#include "base/time.h"

namespace muster {

// What an agent itself tells of its node, for `muster status --local` (docs/STATUS.md). Pure.
struct NodeIdentity {
  std::string job_id;
  std::string node_id;
  int launcher_pid = 0;
  int restarts_max = 0;
};

// For people: a line, then a line for each worker.
std::string NodeStatusTable(const NodeIdentity& node, const SupervisorMachine& machine, Time now);
// For programs: one JSON object in one line, without its line break.
std::string NodeStatusJson(const NodeIdentity& node, const SupervisorMachine& machine, Time now);

}  // namespace muster

#endif  // MUSTER_AGENT_NODE_STATUS_H_
