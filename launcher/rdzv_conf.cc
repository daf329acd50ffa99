#include "launcher/rdzv_conf.h"

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/nearest_word.h"
#include "launcher/option_values.h"

namespace muster {
namespace {

constexpr int kAttemptsMax = 1000000;
constexpr Duration kEtcdLeaseMin = std::chrono::seconds(2);

absl::Status InKey(absl::string_view key, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(key, ": ", status.message()));
}

template <typename T, typename Parse>
absl::Status Read(absl::string_view key, absl::string_view value, Parse parse, T* field) {
  auto parsed = parse(value);
  if (!parsed.ok()) return InKey(key, parsed.status());
  *field = *parsed;
  return absl::OkStatus();
}

absl::StatusOr<HostMaster> ParseIsHost(absl::string_view value) {
  std::string word = absl::AsciiStrToLower(value);
  if (word == "t" || word == "y") return HostMaster::kYes;
  if (word == "f" || word == "n") return HostMaster::kNo;
  absl::StatusOr<bool> is_host = ParseSwitch(word);
  if (!is_host.ok()) return is_host.status();
  return *is_host ? HostMaster::kYes : HostMaster::kNo;
}

absl::Status UnknownKey(absl::string_view key) {
  static const std::vector<std::string>& known =
      *new std::vector<std::string>{"join_timeout",
                                    "last_call_timeout",
                                    "close_timeout",
                                    "heartbeat_timeout",
                                    "keep_alive_interval",
                                    "keep_alive_max_attempt",
                                    "read_timeout",
                                    "is_host",
                                    "store_type",
                                    "timeout",
                                    "protocol",
                                    "ca_cert",
                                    "ssl_cert",
                                    "ssl_cert_key"};
  if (key == "rank") {
    return absl::InvalidArgumentError("the key 'rank' is not for users: use --node-rank");
  }
  std::string nearest = NearestWord(std::string(key), known);
  return absl::InvalidArgumentError(absl::StrCat("unknown key ", Quoted(key), ": ",
                                                 nearest.empty()
                                                     ? "known are " + absl::StrJoin(known, ", ")
                                                     : "did you mean " + nearest + "?"));
}

absl::Status ReadStoreType(absl::string_view value, RdzvConf* conf) {
  if (value == "file") {
    return absl::UnimplementedError("store_type: 'file' is not available yet: use tcp");
  }
  if (value != "tcp") {
    return absl::InvalidArgumentError(
        absl::StrCat("store_type: ", Quoted(value), " is not a choice: give tcp"));
  }
  conf->without_effect.emplace_back("store_type");
  return absl::OkStatus();
}

// By the names of etcd-v2 and of the older etcd backend, and our own.
bool IsOfEtcd(absl::string_view key) {
  return key == "protocol" || key == "ca_cert" || key == "cacert" || key == "ssl_cert" ||
         key == "cert" || key == "ssl_cert_key" || key == "key" || key == "etcd_prefix" ||
         key == "leader_lease" || key == "user" || key == "password_file";
}

absl::Status ReadLease(absl::string_view value, Duration* lease) {
  absl::Status read = Read("leader_lease", value, ParsePositiveSpan, lease);
  if (!read.ok() || *lease >= kEtcdLeaseMin) return read;
  return absl::InvalidArgumentError("leader_lease: a lease of etcd lasts 2 s at least");
}

absl::Status ReadOfEtcd(const std::string& key, absl::string_view value, RdzvConf* conf) {
  conf->of_etcd.push_back(key);
  EtcdOptions& etcd = conf->election.etcd;
  if (key == "leader_lease") return ReadLease(value, &conf->election.lease);
  if (key == "protocol") {
    if (value != "http" && value != "https") {
      return absl::InvalidArgumentError(
          absl::StrCat("protocol: ", Quoted(value), " is not a choice: give http or https"));
    }
    etcd.tls = value == "https";
    return absl::OkStatus();
  }
  std::string* field = &etcd.key_file;
  if (key == "ca_cert" || key == "cacert") field = &etcd.ca_file;
  if (key == "ssl_cert" || key == "cert") field = &etcd.cert_file;
  if (key == "user") field = &etcd.user;
  if (key == "password_file") field = &etcd.password_file;
  if (key == "etcd_prefix") field = &conf->election.prefix;
  *field = std::string(value);
  return absl::OkStatus();
}

absl::Status ReadItem(const std::string& key, absl::string_view value, RdzvConf* conf) {
  if (key == "join_timeout") return Read(key, value, ParsePositiveSpan, &conf->join_timeout);
  if (key == "last_call_timeout") {
    return Read(key, value, ParsePositiveSpan, &conf->last_call_timeout);
  }
  if (key == "keep_alive_interval") {
    return Read(key, value, ParsePositiveSpan, &conf->keep_alive_interval);
  }
  if (key == "keep_alive_max_attempt") {
    auto parse = [](absl::string_view text) { return ParseWhole(text, 1, kAttemptsMax); };
    return Read(key, value, parse, &conf->keep_alive_max_attempt);
  }
  if (key == "timeout") return Read(key, value, ParsePositiveSpan, &conf->timeout);
  if (key == "is_host") return Read(key, value, ParseIsHost, &conf->host_master);
  if (key == "store_type") return ReadStoreType(value, conf);
  if (key == "close_timeout" || key == "heartbeat_timeout" || key == "read_timeout") {
    conf->without_effect.push_back(key);
    Duration ignored;
    return Read(key, value, ParsePositiveSpan, &ignored);
  }
  if (IsOfEtcd(key)) return ReadOfEtcd(key, value, conf);
  return UnknownKey(key);
}

}  // namespace

absl::StatusOr<RdzvConf> ParseRdzvConf(absl::string_view text) {
  RdzvConf conf;
  if (absl::StripAsciiWhitespace(text).empty()) return conf;
  for (absl::string_view item : absl::StrSplit(text, ',')) {
    std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(item, absl::MaxSplits('=', 1));
    std::string key(absl::StripAsciiWhitespace(parts.first));
    absl::string_view value = absl::StripAsciiWhitespace(parts.second);
    if (key.empty() || value.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(Quoted(item), " is not key=value: give key=value,key=value"));
    }
    absl::Status read = ReadItem(key, value, &conf);
    if (!read.ok()) return read;
  }
  return conf;
}

}  // namespace muster
