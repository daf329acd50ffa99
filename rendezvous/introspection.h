#ifndef MUSTER_RENDEZVOUS_INTROSPECTION_H_
#define MUSTER_RENDEZVOUS_INTROSPECTION_H_

#include <absl/status/status.h>

#include <memory>
#include <optional>
#include <string>

#include "base/host_port.h"
#include "rendezvous/http_pages.h"
#include "rendezvous/incident_log.h"
#include "rendezvous/master_server.h"

namespace muster {

// What a standing master shows of itself besides gRPC (docs/STATUS.md): the incident log and the
// HTTP pages. Nothing unless it is told to.
class Introspection {
 public:
  struct Options {
    std::string incident_log;      // file; empty: none
    std::optional<HostPort> http;  // host name or IP address
  };

  // Before the server starts: opens the log and has the loop write to it. InvalidArgument: the file
  // cannot be written; one line.
  absl::Status OpenLog(const Options& options, MasterLoop::Options* loop);

  // After the server has started; `server` outlives this object. Unavailable: the address cannot be
  // listened on; one line.
  absl::Status ServePages(const Options& options, MasterServer* server);

  int http_port() const { return pages_ == nullptr ? 0 : pages_->port(); }

 private:
  std::shared_ptr<IncidentLog> log_;
  std::unique_ptr<HttpPages> pages_;
};

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_INTROSPECTION_H_
