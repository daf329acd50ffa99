#include "rendezvous/musterd_table.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_replace.h>

#include <chrono>
#include <string>
#include <utility>

#include "base/endpoint_list.h"
#include "base/value_text.h"
#include "rendezvous/settings.h"

namespace muster {
namespace {

constexpr int kDefaultPort = 29400;
constexpr int kEtcdPort = 2379;
constexpr Duration kEtcdLeaseMin = std::chrono::seconds(2);
constexpr int kDefaultHttpPort = 29401;
constexpr int kCountMax = 1'000'000'000;

// The value of `parse(text)`, or its problem.
template <typename Parse, typename T>
absl::Status Read(absl::string_view text, const Parse& parse, T* value) {
  auto parsed = parse(text);
  if (!parsed.ok()) return parsed.status();
  *value = *std::move(parsed);
  return absl::OkStatus();
}

absl::Status SetListen(absl::string_view text, MusterdConfig* config) {
  const auto parse = [](absl::string_view address) {
    return ParseHostPort({address.data(), address.size()}, kDefaultPort);
  };
  return Read(text, parse, &config->listen);
}

absl::Status SetHttpEndpoint(absl::string_view text, MusterdConfig* config) {
  const auto parse = [](absl::string_view address) {
    return ParseHostPort({address.data(), address.size()}, kDefaultHttpPort);
  };
  return Read(text, parse, &config->http);
}

absl::Status Keep(absl::string_view text, std::string* value) {
  *value = std::string(text);
  return absl::OkStatus();
}

absl::Status SetIncidentLog(absl::string_view text, MusterdConfig* config) {
  return Keep(text, &config->incident_log);
}

absl::Status SetStateDir(absl::string_view text, MusterdConfig* config) {
  return Keep(text, &config->state_dir);
}

absl::Status SetInsecure(absl::string_view text, MusterdConfig* config) {
  return Read(text, ParseSwitch, &config->security.insecure);
}

absl::Status SetEtcdEndpoints(absl::string_view text, MusterdConfig* config) {
  const auto parse = [](absl::string_view endpoints) {
    return ParseEndpoints({endpoints.data(), endpoints.size()}, kEtcdPort);
  };
  return Read(text, parse, &config->election.etcd.endpoints);
}

absl::Status SetEtcdPrefix(absl::string_view text, MusterdConfig* config) {
  if (text.size() < 2 || text.front() != '/' || text.back() == '/') {
    return absl::InvalidArgumentError(
        absl::StrCat(Quoted(text), " is no prefix of keys: give one such as /muster/blue"));
  }
  config->election.prefix = std::string(text);
  return absl::OkStatus();
}

absl::Status SetEtcdLease(absl::string_view text, MusterdConfig* config) {
  if (absl::Status read = Read(text, ParseSpan, &config->election.lease); !read.ok()) return read;
  if (config->election.lease >= kEtcdLeaseMin) return absl::OkStatus();
  return absl::InvalidArgumentError("a lease of etcd lasts 2 s at least");
}

absl::Status SetEtcdTls(absl::string_view text, MusterdConfig* config) {
  return Read(text, ParseSwitch, &config->election.etcd.tls);
}

// A text of EtcdOptions.
template <std::string EtcdOptions::*Field>
absl::Status SetEtcd(absl::string_view text, MusterdConfig* config) {
  return Keep(text, &(config->election.etcd.*Field));
}

absl::Status SetTlsCert(absl::string_view text, MusterdConfig* config) {
  return Keep(text, &config->security.tls.cert);
}

absl::Status SetTlsKey(absl::string_view text, MusterdConfig* config) {
  return Keep(text, &config->security.tls.key);
}

absl::Status SetTlsCa(absl::string_view text, MusterdConfig* config) {
  return Keep(text, &config->security.tls.ca);
}

absl::Status SetTokenFile(absl::string_view text, MusterdConfig* config) {
  return Keep(text, &config->security.token_file);
}

absl::Status SetAllowedPeers(absl::string_view text, MusterdConfig* config) {
  return Read(text, ParseNames, &config->security.allowed_peers);
}

// 0: no limit.
template <typename T>
absl::Status ReadCount(absl::string_view text, T* count) {
  const absl::StatusOr<int> number = ParseWhole(text, 0, kCountMax);
  if (!number.ok()) return number.status();
  *count = static_cast<T>(*number);
  return absl::OkStatus();
}

absl::Status SetMaxJobs(absl::string_view text, MusterdConfig* config) {
  return ReadCount(text, &config->limits.jobs_max);
}

absl::Status SetMaxNodes(absl::string_view text, MusterdConfig* config) {
  return ReadCount(text, &config->limits.nodes_max);
}

absl::Status SetJobIdleTimeout(absl::string_view text, MusterdConfig* config) {
  if (absl::Status read = Read(text, ParseSpan, &config->job_idle_timeout); !read.ok()) return read;
  if (config->job_idle_timeout <= kLongestTimeout) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(Quoted(text), " is over a year: give 0 to keep jobs for ever"));
}

absl::Status SetMaxAgents(absl::string_view text, MusterdConfig* config) {
  return ReadCount(text, &config->limits.streams_max);
}

absl::Status SetJoinsPerSecond(absl::string_view text, MusterdConfig* config) {
  return ReadCount(text, &config->limits.streams_per_second);
}

absl::Status SetMaxMessageBytes(absl::string_view text, MusterdConfig* config) {
  constexpr int64_t kMin = 1024;
  constexpr int64_t kMax = 256 * 1024;  // the protocol's (rendezvous/message_codec.h)
  const absl::StatusOr<int64_t> bytes = ParseBytes(text);
  if (!bytes.ok()) return bytes.status();
  if (*bytes < kMin || *bytes > kMax) {
    return absl::InvalidArgumentError(absl::StrCat(Quoted(text), " is not from 1K to 256K"));
  }
  config->limits.message_bytes_max = static_cast<size_t>(*bytes);
  return absl::OkStatus();
}

absl::Status SetLogLevel(absl::string_view text, MusterdConfig* config) {
  return Read(text, ParseLogLevel, &config->log_level);
}

absl::Status SetLogFormat(absl::string_view text, MusterdConfig* config) {
  if (text != "text" && text != "json") {
    return absl::InvalidArgumentError(
        absl::StrCat(Quoted(text), " is not a format: give text or json"));
  }
  config->log_format = text == "json" ? LogFormat::kJson : LogFormat::kDated;
  return absl::OkStatus();
}

using enum MusterdGroup;

// clang-format off
constexpr MusterdOption kOptions[] = {
    {.name = "listen", .group = kListening, .metavar = "ADDRESS[:PORT]",
     .default_text = "127.0.0.1:29400",
     .help = "Where agents reach the master: an address of this host, 0.0.0.0 or [::] for all of "
             "them. Port 0: any free one.",
     .set = SetListen},

    {.name = "http-endpoint", .group = kListening, .metavar = "ADDRESS[:PORT]",
     .default_note = "none; port 29401",
     .help = "Serve a page for people, the status as JSON, metrics for Prometheus and health over "
             "HTTP, all to be read only, to whoever reaches this address.",
     .set = SetHttpEndpoint},

    {.name = "state-dir", .group = kState, .metavar = "FOLDER", .default_note = "nothing is kept",
     .help = "Keep what must outlive this process in FOLDER, which is made when it is not there: a "
             "master that starts again goes on with its jobs, and no worker notices. Not with "
             "--etcd-endpoints.",
     .set = SetStateDir},

    {.name = "tls-cert", .group = kSecurity, .metavar = "FILE", .variable = "MUSTER_TLS_CERT",
     .help = "Speak TLS, with the certificate in this PEM file (its chain behind it).",
     .set = SetTlsCert},
    {.name = "tls-key", .group = kSecurity, .metavar = "FILE", .variable = "MUSTER_TLS_KEY",
     .help = "The key of that certificate, in PEM form.",
     .set = SetTlsKey},
    {.name = "tls-ca", .group = kSecurity, .metavar = "FILE", .variable = "MUSTER_TLS_CA",
     .help = "Take only agents that have a certificate of this CA (mutual TLS).",
     .set = SetTlsCa},
    {.name = "allowed-peers", .group = kSecurity, .metavar = "NAMES", .default_note = "any",
     .help = "Of those, take only certificates with one of these names: DNS names (*.example.org), "
             "IP addresses or URIs (spiffe://...), with commas between them.",
     .set = SetAllowedPeers},
    {.name = "token-file", .group = kSecurity, .metavar = "FILE", .variable = "MUSTER_TOKEN_FILE",
     .help = "Take only agents that know a token of this file, one a line. Needs TLS outside "
             "loopback.",
     .set = SetTokenFile},
    {.name = "insecure", .group = kSecurity,
     .help = "Listen outside loopback without TLS: whoever reaches the port takes part.",
     .set = SetInsecure},

    {.name = "etcd-endpoints", .group = kElection, .metavar = "HOST[:PORT],...",
     .default_note = "none; port 2379",
     .help = "One of several masters: those that name the same etcd and prefix elect the one that "
             "serves, and keep the jobs' state there, not in --state-dir. The others stand by and "
             "tell agents where it is. All members of etcd should be given.",
     .set = SetEtcdEndpoints},
    {.name = "etcd-prefix", .group = kElection, .metavar = "PREFIX",
     .default_text = "/muster/masters",
     .help = "How all keys begin. Masters with different ones have nothing to do with each other.",
     .set = SetEtcdPrefix},
    {.name = "etcd-lease", .group = kElection, .metavar = "TIME", .default_text = "5s",
     .help = "How long a leader that vanished is waited for; 2 s at least.",
     .set = SetEtcdLease},
    {.name = "etcd-tls", .group = kElection,
     .help = "Speak TLS with etcd.", .set = SetEtcdTls},
    {.name = "etcd-ca", .group = kElection, .metavar = "FILE",
     .default_note = "the system's authorities",
     .help = "Whose certificates etcd must have (PEM).",
     .set = SetEtcd<&EtcdOptions::ca_file>},
    {.name = "etcd-cert", .group = kElection, .metavar = "FILE",
     .help = "The certificate that is shown to etcd (PEM).",
     .set = SetEtcd<&EtcdOptions::cert_file>},
    {.name = "etcd-key", .group = kElection, .metavar = "FILE",
     .help = "Its key (PEM).", .set = SetEtcd<&EtcdOptions::key_file>},
    {.name = "etcd-user", .group = kElection, .metavar = "NAME",
     .help = "Who etcd knows this master as, where it asks.",
     .set = SetEtcd<&EtcdOptions::user>},
    {.name = "etcd-password-file", .group = kElection, .metavar = "FILE",
     .help = "The user's password, on the first line; read again for each new token.",
     .set = SetEtcd<&EtcdOptions::password_file>},

    {.name = "max-jobs", .group = kLimits, .metavar = "N", .default_text = "10000",
     .help = "Jobs that have not ended. 0: no limit.",
     .set = SetMaxJobs},
    {.name = "max-nodes", .group = kLimits, .metavar = "N", .default_text = "0",
     .help = "Nodes of one job, spares included. 0: no limit.",
     .set = SetMaxNodes},
    {.name = "job-idle-timeout", .group = kLimits, .metavar = "TIME", .default_text = "1h",
     .help = "Give up and forget a job that has not ended and of which no agent has been connected "
             "for so long. 0: never.",
     .set = SetJobIdleTimeout},
    {.name = "max-agents", .group = kLimits, .metavar = "N", .default_text = "20000",
     .help = "Agents that are connected at once. 0: no limit.",
     .set = SetMaxAgents},
    {.name = "joins-per-second", .group = kLimits, .metavar = "N", .default_text = "10000",
     .help = "Agents that may connect within a second. 0: no limit.",
     .set = SetJoinsPerSecond},
    {.name = "max-message-bytes", .group = kLimits, .metavar = "BYTES", .default_text = "256K",
     .help = "Size of one message of an agent, 1K to 256K.",
     .set = SetMaxMessageBytes},

    {.name = "log-level", .group = kLog, .metavar = "debug|info|warning|error",
     .default_text = "info",
     .help = "The least important lines that are written, to stderr.",
     .set = SetLogLevel},
    {.name = "log-format", .group = kLog, .metavar = "text|json", .default_text = "text",
     .help = "json: each line is an object with ts, level, component and msg.",
     .set = SetLogFormat},
    {.name = "incident-log", .group = kLog, .metavar = "FILE", .default_note = "none",
     .help = "Append a line of JSON to FILE when an incident begins and when it is over.",
     .set = SetIncidentLog},

    {.name = "config", .group = kActions, .metavar = "FILE",
     .help = "Read options from FILE as well: lines NAME = VALUE, comments from # on."},
    {.name = "check-config", .group = kActions,
     .help = "Check all options, print each with where it comes from, and do not start. Variables "
             "MUSTERD_... of no option are warned of, as by a start."},
    {.name = "version", .group = kActions, .help = "Print the version."},
    {.name = "help", .group = kActions, .help = "Print this text."},
};
// clang-format on

}  // namespace

std::span<const MusterdOption> MusterdOptions() { return kOptions; }

std::string MusterdVariable(const MusterdOption& option) {
  if (option.set == nullptr) return "";
  return absl::StrCat("MUSTERD_",
                      absl::AsciiStrToUpper(absl::StrReplaceAll(option.name, {{"-", "_"}})));
}

const char* GroupTitle(MusterdGroup group) {
  switch (group) {
    case kListening:
      return "Listening";
    case kState:
      return "State";
    case kSecurity:
      return "Security";
    case kElection:
      return "Several masters";
    case kLimits:
      return "Limits";
    case kLog:
      return "Log";
    case kActions:
      return "Other";
  }
  return "";
}

}  // namespace muster
