#ifndef MUSTER_RENDEZVOUS_MUSTERD_CONFIG_H_
#define MUSTER_RENDEZVOUS_MUSTERD_CONFIG_H_

#include <absl/status/statusor.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/env.h"
#include "base/host_port.h"
#include "base/log.h"
#include "base/time.h"
#include "rendezvous/admission_limits.h"
#include "rendezvous/etcd_options.h"
#include "rendezvous/security.h"

// What musterd is told: by its command line, MUSTERD_ variables and one file. Pure, but for the
// file, which the caller reads.

namespace muster {

// The options of rendezvous/musterd_table.h as values. Defaults are in the table.
struct MusterdConfig {
  HostPort listen;
  std::string state_dir;  // folder; empty: nothing is kept
  ServerSecurity security;
  EtcdElectionOptions election;  // counts where etcd has endpoints
  MasterLimits limits;
  Duration job_idle_timeout{};  // 0: jobs are kept for ever
  LogLevel log_level = LogLevel::kInfo;
  LogFormat log_format = LogFormat::kDated;
  std::optional<HostPort> http;  // where the HTTP pages are; nothing: nowhere
  std::string incident_log;      // file; empty: none

  // One of several masters, which elect the one that serves.
  bool is_elected() const { return !election.etcd.endpoints.empty(); }
};

// One option: its text and where that comes from ("--listen", "MUSTERD_LISTEN",
// "musterd.conf:3", "default").
struct MusterdSetting {
  std::string text;
  std::string from;
};

enum class MusterdAction { kServe, kCheck, kHelp, kVersion };

struct MusterdCommand {
  MusterdAction action = MusterdAction::kServe;
  MusterdConfig config;
  std::map<std::string, MusterdSetting> settings;  // by option, for --check-config
  std::vector<std::string> warnings;
};

using FileReader = std::function<absl::StatusOr<std::string>(const std::string& path)>;

// The command line wins over variables, these over the file of --config, this over defaults.
// InvalidArgument, one line that names the option, the variable or file and line: unknown (with the
// nearest known one), given twice in the file, no value or an empty one, a value that makes no
// sense, options that contradict each other. FailedPrecondition: rendezvous/security.h refuses.
// What `read_file` says when it fails is handed on. With --help and --version nothing else counts.
absl::StatusOr<MusterdCommand> ReadMusterdCommand(const std::vector<std::string>& words,
                                                  const EnvMap& env, const FileReader& read_file);

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_MUSTERD_CONFIG_H_
