#ifndef MUSTER_AGENT_NODE_REPORT_H_
#define MUSTER_AGENT_NODE_REPORT_H_

#include <map>
#include <string>

#include "agent/agent_options.h"
#include "agent/exit_report.h"
#include "agent/generation_shell.h"
#include "agent/supervisor_machine.h"

namespace muster {

// What the user is told of failures: one line at each restart, the whole block at the end. Collects
// for agent/exit_report.h what only the shell knows: wall-clock times, last lines, paths.
class NodeReport {
 public:
  NodeReport(const AgentOptions& options, GenerationShell& generation);

  // The workers of a generation have ended; their logs can still be read.
  void Closing(const Outcome& outcome);
  // The next generation begins.
  void Starting(const Assignment& assignment);
  // The end, on stderr; nothing after success or a stop that was asked for by a signal.
  void Print(const Outcome& outcome, int exit_code) const;

 private:
  const AgentOptions& options_;
  GenerationShell& generation_;
  std::string host_name_;
  ExitReport report_;  // of the last generation that ended
};

}  // namespace muster

#endif  // MUSTER_AGENT_NODE_REPORT_H_
