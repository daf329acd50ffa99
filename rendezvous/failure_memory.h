#ifndef MUSTER_RENDEZVOUS_FAILURE_MEMORY_H_
#define MUSTER_RENDEZVOUS_FAILURE_MEMORY_H_

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "base/time.h"
#include "rendezvous/job_record.h"
#include "rendezvous/settings.h"

namespace muster {

// Which nodes have failed lately, by id, whatever processes and generations came and went: a node
// with max_node_failures within node_failure_window is excluded until the oldest of them is as far
// back as that.
class FailureMemory {
 public:
  // Remembers nothing while there is no limit.
  void Add(const std::string& node_id, Time now, const JobSettings& settings);

  bool Excludes(const std::string& node_id) const { return excluded_.count(node_id) != 0; }
  // When the next exclusion ends; kNever: nobody is excluded.
  Time NextDeadline() const;
  // Ends the exclusions that are over, and names their nodes.
  std::vector<std::string> Forgive(Time now);

  // What outlives the master, by node. It does not change with time alone.
  std::vector<FailureRecord> Record() const;
  // Goes on from there, as if the latest failure of all were of `now`.
  void Restore(const std::vector<FailureRecord>& records, Time now, const JobSettings& settings);

 private:
  void Exclude(const std::string& node_id, Time now, const JobSettings& settings);

  std::map<std::string, std::deque<Time>> failures_;  // the latest max_node_failures of each node
  std::map<std::string, Time> excluded_;              // until then
};

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_FAILURE_MEMORY_H_
