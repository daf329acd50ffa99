#ifndef MUSTER_RENDEZVOUS_HTTP_PAGES_H_
#define MUSTER_RENDEZVOUS_HTTP_PAGES_H_

#include <absl/status/statusor.h>

#include <functional>
#include <memory>

#include "base/host_port.h"
#include "base/time.h"
#include "rendezvous/status_watchers.h"

namespace muster {

// What a master shows over HTTP, to be read only: / (a page for people), /api/v1/status, /metrics,
// /healthz (the loop turns) and /readyz (it serves). One that stands by says so, and where the
// master is, instead of a status. Threads of its own; who reads slowly or asks
// too often gets in the way of other readers only.
class HttpPages {
 public:
  struct Options {
    HostPort address;  // an IP literal; port 0: any free one
    // Has a query answered, as MasterServer::Ask and ElectedMaster::Ask. Any thread.
    std::function<void(StatusQuery query, StatusCallback callback)> ask;
    // How long the master may take to answer before a page says that it does not.
    Duration patience = std::chrono::seconds(5);
  };

  // Listens when it returns. Unavailable: the address cannot be listened on; one line.
  static absl::StatusOr<std::unique_ptr<HttpPages>> Start(Options options);
  virtual ~HttpPages() = default;  // ends all requests

  virtual int port() const = 0;
};

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_HTTP_PAGES_H_
