#ifndef MUSTER_RENDEZVOUS_INTROSPECTION_H_
#define MUSTER_RENDEZVOUS_INTROSPECTION_H_

#include <absl/status/status.h>

#include <functional>
#include <memory>
#include <string>

#include "base/host_port.h"
#include "rendezvous/http_pages.h"
#include "rendezvous/incident_log.h"
#include "rendezvous/master_loop.h"

namespace muster {

// What a standing master shows of itself besides gRPC (docs/STATUS.md), from the start of its
// process to the end, whether it leads or not: the incident log and the HTTP pages. Nothing unless
// it is told to.
class Introspection {
 public:
  // Opens the file ("": there is no log). PermissionDenied: it cannot be written; one line.
  absl::Status OpenLog(const std::string& path);

  // Has a loop that is about to run write to the log, if there is one.
  void LogIncidents(MasterLoop::Options* loop) const;

  // Listens on a host name or IP address. `ask` as of HttpPages::Options; what it uses outlives
  // this object. Unavailable: the address cannot be listened on; one line.
  absl::Status ServePages(const HostPort& where,
                          std::function<void(StatusQuery, StatusCallback)> ask);

  int http_port() const { return pages_ == nullptr ? 0 : pages_->port(); }

 private:
  std::shared_ptr<IncidentLog> log_;
  std::unique_ptr<HttpPages> pages_;
};

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_INTROSPECTION_H_
