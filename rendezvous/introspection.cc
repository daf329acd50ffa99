#include "rendezvous/introspection.h"

#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "rendezvous/dial.h"
#include "rendezvous/status_codec.h"
#include "rendezvous/status_json.h"

namespace muster {

absl::Status Introspection::OpenLog(const std::string& path) {
  if (path.empty()) return absl::OkStatus();
  IncidentLog::Options log;
  log.path = path;
  log.on_problem = [](const std::string& text) { Log(LogLevel::kWarning, text); };
  auto opened = IncidentLog::Open(std::move(log));
  if (!opened.ok()) return opened.status();
  log_ = *std::move(opened);
  return absl::OkStatus();
}

void Introspection::LogIncidents(MasterLoop::Options* loop) const {
  if (log_ == nullptr) return;
  loop->on_incident = [log = log_](const std::string& job_id, uint64_t instance,
                                   const IncidentRecord& record) {
    log->Add(IncidentJson(job_id, instance, Encode(record)));
  };
}

absl::Status Introspection::ServePages(const HostPort& where,
                                       std::function<void(StatusQuery, StatusCallback)> ask) {
  const absl::StatusOr<std::vector<std::string>> addresses = ResolveHost(where.host);
  if (!addresses.ok()) return addresses.status();
  HttpPages::Options pages;
  pages.address = {addresses->front(), where.port};
  pages.ask = std::move(ask);
  auto started = HttpPages::Start(std::move(pages));
  if (!started.ok()) return started.status();
  pages_ = *std::move(started);
  return absl::OkStatus();
}

}  // namespace muster
