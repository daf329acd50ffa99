#include "rendezvous/endpoint_finder.h"

#include <absl/strings/str_cat.h>

#include <utility>

#include "rendezvous/master_dial.h"
#include "rendezvous/stream_end_text.h"

namespace muster {

EndpointFinder::EndpointFinder(Clock* clock, ClusterOptions options)
    : clock_(clock), options_(std::move(options)) {}

absl::StatusOr<MasterFinder::Found> EndpointFinder::Find(const Resolver& resolve, int tries,
                                                         int cancel_fd) {
  std::string failures;
  bool is_each_over_tls = tries == choices();
  for (int i = 0; i < tries; ++i) {
    const HostPort& endpoint = options_.endpoints[next_];
    absl::StatusOr<Connection> connection = Reach(endpoint, resolve, cancel_fd);
    if (connection.ok()) return Found{*std::move(connection), endpoint, i, failures};
    const absl::Status& status = connection.status();
    if (absl::IsCancelled(status)) return status;
    const std::string text = DialFailureText(endpoint, status);
    if (choices() == 1) return absl::Status(status.code(), text);
    is_each_over_tls = is_each_over_tls && absl::IsUnimplemented(status);
    absl::StrAppend(&failures, failures.empty() ? "" : "; ", text);
    PassOver();
  }
  return is_each_over_tls ? absl::UnimplementedError(failures) : absl::UnavailableError(failures);
}

void EndpointFinder::PassOver() { next_ = (next_ + 1) % options_.endpoints.size(); }

absl::StatusOr<Connection> EndpointFinder::Reach(const HostPort& endpoint, const Resolver& resolve,
                                                 int cancel_fd) {
  absl::StatusOr<std::vector<std::string>> addresses = resolve(endpoint.host);
  if (!addresses.ok()) return addresses.status();
  if (options_.endpoints.size() == 1) {
    return HostOrConnect(endpoint, *std::move(addresses), cancel_fd);
  }
  return DialMaster(*addresses, endpoint.port, options_.connect_timeout, cancel_fd,
                    options_.security.has_tls());
}

absl::StatusOr<Connection> EndpointFinder::HostOrConnect(const HostPort& endpoint,
                                                         std::vector<std::string> addresses,
                                                         int cancel_fd) {
  bool hosts = false;
  {
    MutexLock lock(&mutex_);
    hosts = hosted_.server != nullptr;
  }
  absl::Status forbidden;
  if (!hosts) {
    absl::StatusOr<HostedMaster> hosted = TryHost(clock_, options_, addresses);
    // Somebody who may listen there perhaps does.
    if (absl::IsPermissionDenied(hosted.status())) {
      forbidden = hosted.status();
    } else if (!hosted.ok()) {
      return hosted.status();
    } else {
      MutexLock lock(&mutex_);
      hosted_ = *std::move(hosted);
    }
  }
  int port = endpoint.port;
  {
    MutexLock lock(&mutex_);
    if (hosted_.server != nullptr) {
      addresses = {hosted_.dial_address};
      port = hosted_.server->port();
    }
  }
  // A master that is not heard any more may hear, and must not take this node for lost.
  absl::StatusOr<Connection> connection =
      was_greeted_ ? Connect(addresses, port, options_.connect_timeout, cancel_fd)
                   : DialMaster(addresses, port, options_.connect_timeout, cancel_fd,
                                options_.security.has_tls());
  was_greeted_ = was_greeted_ || connection.ok();
  if (absl::IsUnavailable(connection.status()) && !forbidden.ok()) return forbidden;
  return connection;
}

bool EndpointFinder::TellWhenIdle(std::function<void()> callback) {
  MutexLock lock(&mutex_);
  if (hosted_.server != nullptr) hosted_.server->TellWhenIdle(std::move(callback));
  return hosted_.server != nullptr;
}

void EndpointFinder::Close() {
  HostedMaster hosted;  // ends without the lock
  MutexLock lock(&mutex_);
  std::swap(hosted, hosted_);
}

}  // namespace muster
