#ifndef MUSTER_RENDEZVOUS_ADMISSION_H_
#define MUSTER_RENDEZVOUS_ADMISSION_H_

#include <optional>

#include "rendezvous/roster.h"

namespace muster {

// Why the master does not let this agent in, or nothing when it does. `job` is what the agent must
// agree with: nullptr while no node is bound to settings yet. `roster`: the nodes that the master
// knows of, perhaps with this one among them.
//
// Exit code 78: settings that are unusable or differ from the job's (each difference is spelled
// out); a fixed rank that is out of range, in a MIN:MAX job, or in a job whose other nodes have
// none, and the reverse. 77: a fixed rank that another node holds; a process that a newer one of
// the same node id has replaced.
std::optional<Rejected> RefusalOf(const Hello& hello, const JobSettings* job, const Roster& roster);

// What a process is told whose place a newer one of the same node id has taken.
Rejected Replaced(const std::string& node_id);

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_ADMISSION_H_
