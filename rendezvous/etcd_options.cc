#include "rendezvous/etcd_options.h"

#include "base/endpoint_list.h"

namespace muster {

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
