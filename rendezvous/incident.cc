#include "rendezvous/incident.h"

#include <chrono>
#include <string>

namespace muster {

bool Failure::is_quick() const { return what.uptime < std::chrono::seconds(10) && !what.was_ready; }

void Incident::AddFailure(const std::string& node_id, const WorkerFailed& failure) {
  if (!root_cause_) root_cause_ = Failure{node_id, failure};
}

}  // namespace muster
