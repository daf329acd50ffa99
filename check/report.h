#ifndef MUSTER_CHECK_REPORT_H_
#define MUSTER_CHECK_REPORT_H_

#include <string>
#include <vector>

#include "check/facts.h"
#include "check/findings.h"

// What `muster check` prints (docs/CHECK.md). No control bytes from outside are left in it. Pure.

namespace muster::check {

// Ranks, nodes, timings, findings; who has met nobody tells its interfaces instead.
std::string ReportTable(const Observed& observed, const std::vector<Finding>& findings);
// The same as JSON in one line.
std::string ReportJson(const Observed& observed, const std::vector<Finding>& findings);

}  // namespace muster::check

#endif  // MUSTER_CHECK_REPORT_H_
