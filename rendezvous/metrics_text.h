#ifndef MUSTER_RENDEZVOUS_METRICS_TEXT_H_
#define MUSTER_RENDEZVOUS_METRICS_TEXT_H_

#include <cstdint>
#include <string>

#include "rendezvous/status_watchers.h"

namespace muster {

// A master's jobs as Prometheus reads them (text format 0.0.4). Names and labels are a promise to
// dashboards: docs/STATUS.md. Jobs that have ended are told as long as the master remembers them.
// `unix_ms`: the wall clock. Pure.
std::string MetricsText(const MasterReport& report, int64_t unix_ms);

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_METRICS_TEXT_H_
