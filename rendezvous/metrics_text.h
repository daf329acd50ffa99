#ifndef MUSTER_RENDEZVOUS_METRICS_TEXT_H_
#define MUSTER_RENDEZVOUS_METRICS_TEXT_H_

#include <string>

#include "rendezvous/status_watchers.h"

namespace muster {

// A master's jobs as Prometheus reads them (text format 0.0.4). Names and labels are a promise to
// dashboards: docs/STATUS.md. Jobs that have ended are told as long as the master remembers them.
// Pure.
std::string MetricsText(const MasterReport& report);

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_METRICS_TEXT_H_
