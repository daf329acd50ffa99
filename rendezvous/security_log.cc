#include "rendezvous/security_log.h"

#include <absl/strings/str_cat.h>

#include <string>

#include "base/log.h"
#include "rendezvous/credential_files.h"

namespace muster {

void LogExposure(const std::vector<std::string>& secrets) {
  for (const std::string& file : secrets) {
    if (const std::string problem = ExposureOf(file); !problem.empty()) {
      Log(LogLevel::kWarning, problem);
    }
  }
}

void LogSecurity(const ServerSecurity& security, const HostPort& listen) {
  LogExposure({security.token_file, security.tls.key});
  absl::Status tokens;
  if (!security.token_file.empty()) tokens = ReadTokens(security.token_file).status();
  const absl::StatusOr<std::string> certificate = CheckTlsFiles(security.tls);
  for (const absl::Status& status : {tokens, certificate.status()}) {
    if (status.ok()) continue;
    Log(LogLevel::kWarning, absl::StrCat(status.message(), ": what was read before stays"));
  }
  if (certificate.ok() && security.has_tls()) Log(LogLevel::kInfo, *certificate);
  if (security.asks_who()) return;
  const bool is_open = !IsLoopbackHost(listen.host);
  Log(is_open ? LogLevel::kWarning : LogLevel::kInfo,
      "agents are not asked who they are (--tls-ca, --token-file)");
}

}  // namespace muster
