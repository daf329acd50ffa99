#include "rendezvous/introspection.h"

#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "rendezvous/dial.h"
#include "rendezvous/status_codec.h"
#include "rendezvous/status_json.h"

namespace muster {

absl::Status Introspection::OpenLog(const Options& options, MasterLoop::Options* loop) {
  if (options.incident_log.empty()) return absl::OkStatus();
  IncidentLog::Options log;
  log.path = options.incident_log;
  log.on_problem = [](const std::string& text) { Log(LogLevel::kWarning, text); };
  auto opened = IncidentLog::Open(std::move(log));
  if (!opened.ok()) return opened.status();
  log_ = *std::move(opened);
  loop->on_incident = [log = log_](const std::string& job_id, uint64_t instance,
                                   const IncidentRecord& record) {
    log->Add(IncidentJson(job_id, instance, Encode(record)));
  };
  return absl::OkStatus();
}

absl::Status Introspection::ServePages(const Options& options, MasterServer* server) {
  if (!options.http) return absl::OkStatus();
  const absl::StatusOr<std::vector<std::string>> addresses = ResolveHost(options.http->host);
  if (!addresses.ok()) return addresses.status();
  HttpPages::Options pages;
  pages.address = {addresses->front(), options.http->port};
  pages.ask = [server](StatusQuery query, StatusCallback callback) {
    server->Ask(std::move(query), std::move(callback));
  };
  pages.is_serving = [server] { return server->is_serving(); };
  auto started = HttpPages::Start(std::move(pages));
  if (!started.ok()) return started.status();
  pages_ = *std::move(started);
  return absl::OkStatus();
}

}  // namespace muster
