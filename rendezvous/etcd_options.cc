#include "rendezvous/etcd_options.h"

#include "base/endpoint_list.h"

namespace muster {

absl::Status CheckEtcdOptions(const EtcdOptions& options) {
  if (options.cert_file.empty() != options.key_file.empty()) {
    return absl::InvalidArgumentError("etcd: a certificate and its key come together");
  }
  if (options.user.empty() != options.password_file.empty()) {
    return absl::InvalidArgumentError("etcd: a user and the file of its password come together");
  }
  const bool has_files = !options.ca_file.empty() || !options.cert_file.empty();
  if (has_files && !options.tls) {
    return absl::InvalidArgumentError("etcd: certificates are given, but TLS is not asked for");
  }
  return absl::OkStatus();
}

std::string EtcdJobPrefix(const std::string& prefix, const std::string& job_id) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  std::string path = prefix + "/jobs/";
  for (const char c : job_id) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
    if (is_plain) {
      path += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      path += {'%', kDigits[byte / 16], kDigits[byte % 16]};
    }
  }
  return path;
}

std::string EtcdName(const EtcdOptions& options) {
  return "etcd at " + ToString(options.endpoints);
}

}  // namespace muster
