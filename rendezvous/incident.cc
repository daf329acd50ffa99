#include "rendezvous/incident.h"

#include <chrono>
#include <string>

namespace muster {

bool Failure::is_quick() const { return what.uptime < std::chrono::seconds(10) && !what.was_ready; }

void Incident::AddFailure(const std::string& node_id, const WorkerFailed& failure) {
  const bool is_worse = !failure.can_restart && !is_fatal();
  if (!root_cause_ || is_worse) root_cause_ = Failure{node_id, failure};
}

}  // namespace muster
