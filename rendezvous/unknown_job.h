#ifndef MUSTER_RENDEZVOUS_UNKNOWN_JOB_H_
#define MUSTER_RENDEZVOUS_UNKNOWN_JOB_H_

#include <absl/status/status.h>

#include <string>
#include <vector>

namespace muster {

// NotFound, in one line: "there is no job 'digit' at this master: did you mean 'digits'?"; without
// a name that is near, the jobs that are there.
absl::Status UnknownJob(const std::string& job_id, const std::vector<std::string>& known);

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_UNKNOWN_JOB_H_
