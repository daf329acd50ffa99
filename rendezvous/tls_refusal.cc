#include "rendezvous/tls_refusal.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>

#include <string>

#include "rendezvous/round_limits.h"

namespace muster {
namespace {

constexpr int kClosedMax = 2;

bool IsClosedAfterHandshake(const ClientSecurity& security, const absl::Status& end) {
  return security.has_tls() && absl::StrContains(end.message(), "Socket closed");
}

}  // namespace

std::optional<Rejected> TlsRefusal(const HostPort& endpoint, const ClientSecurity& security,
                                   const absl::Status& end, int closed_before) {
  if (!security.has_tls()) return std::nullopt;
  const std::string where = ToString(endpoint) + ": ";
  if (absl::StrContains(end.message(), "certificate verify failed")) {
    return Rejected{kExitRefused,
                    absl::StrCat(where, "the master's certificate is not one of the CA in ",
                                 security.tls.ca, ", or not valid now: correct --tls-ca")};
  }
  if (absl::StrContains(end.message(), "is not in peer certificate")) {
    const std::string& name = security.server_name.empty() ? endpoint.host : security.server_name;
    return Rejected{kExitRefused,
                    absl::StrCat(where, "the master's certificate does not have the name ", name,
                                 ": give another endpoint or --tls-server-name")};
  }
  if (absl::StrContains(end.message(), "wrong version number")) {
    return Rejected{kExitBadSettings,
                    absl::StrCat(where,
                                 "what listens there speaks no TLS: drop --tls-ca, or give "
                                 "the master a certificate")};
  }
  if (IsClosedAfterHandshake(security, end) && closed_before >= kClosedMax) {
    return Rejected{kExitRefused,
                    absl::StrCat(where, "the master closes the connection: it does not take ",
                                 security.tls.cert.empty()
                                     ? "nodes without a certificate: give --tls-cert and --tls-key"
                                     : absl::StrCat("the certificate in ", security.tls.cert))};
  }
  return std::nullopt;
}

std::optional<Rejected> TlsRefusals::Ended(const HostPort& endpoint, const absl::Status& end) {
  std::optional<Rejected> refusal = TlsRefusal(endpoint, security_, end, closed_);
  closed_ = IsClosedAfterHandshake(security_, end) ? closed_ + 1 : 0;
  return refusal;
}

}  // namespace muster
