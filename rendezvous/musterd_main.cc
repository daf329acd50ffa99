// musterd: a standing master for the jobs of a cluster. docs/OPERATIONS.md.

#include <absl/strings/str_cat.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/env.h"
#include "base/log.h"
#include "base/print_out.h"
#include "base/version.h"
#include "rendezvous/credential_files.h"
#include "rendezvous/file_store.h"
#include "rendezvous/introspection.h"
#include "rendezvous/musterd_config.h"
#include "rendezvous/musterd_documents.h"
#include "rendezvous/musterd_state.h"
#include "rendezvous/security_log.h"
#include "rendezvous/service_notify.h"
#include "rendezvous/standing_master.h"
#include "rendezvous/stop_signals.h"

namespace muster {
namespace {

// As docs/EXIT_CODES.md has them.
int ExitCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
      return 2;
    case absl::StatusCode::kFailedPrecondition:
      return 78;
    default:
      return 69;
  }
}

constexpr int kExitCannotCreate = 73;

int Fail(const absl::Status& status, int code) {
  Log(LogLevel::kError, std::string(status.message()));
  return code;
}

int Fail(const absl::Status& status) { return Fail(status, ExitCodeOf(status)); }

absl::StatusOr<std::string> ReadConfigFile(const std::string& path) {
  absl::StatusOr<std::string> text = ReadCredentialFile(path);
  if (text.ok()) return text;
  return absl::Status(text.status().code(), absl::StrCat("--config: ", text.status().message()));
}

// Those that musterd only reads.
absl::Status CheckAllFiles(const MusterdConfig& config) {
  const absl::Status status = CheckFiles(config.security.tls, config.security.token_file);
  return status.ok() ? CheckFiles(config.election.etcd) : status;
}

void LogWarnings(const MusterdCommand& command) {
  for (const std::string& warning : command.warnings) Log(LogLevel::kWarning, warning);
}

// Each agent takes a descriptor.
void RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

int Serve(const MusterdCommand& command, const EnvMap& env) {
  const StopSignals signals;
  RaiseDescriptorLimit();
  const ServiceNotify notify(env);
  RealClock clock;
  MusterdState state;
  Introspection introspection;
  absl::Status status = CheckAllFiles(command.config);
  if (!status.ok()) return Fail(status);
  status = state.Open(command.config.state_dir);
  if (!status.ok()) return Fail(status, ExitCodeOfStateError(status));
  status = introspection.OpenLog(command.config.incident_log);
  if (!status.ok()) return Fail(status, kExitCannotCreate);
  absl::StatusOr<std::unique_ptr<StandingMaster>> master =
      StandingMaster::Start(&clock, command.config, &state, std::move(introspection));
  if (!master.ok()) return Fail(master.status());
  SetLogStyle(command.config.log_format, "musterd");
  LogWarnings(command);
  const std::string where = ToString({command.config.listen.host, (*master)->port()});
  Log(LogLevel::kInfo, absl::StrCat("musterd ", kVersion, " listens on ", where));
  if ((*master)->http_port() != 0) {
    const HostPort http{command.config.http->host, (*master)->http_port()};
    Log(LogLevel::kInfo, absl::StrCat("shows itself over HTTP on ", ToString(http)));
  }
  const auto log_security = [&config = command.config] {
    LogExposure({config.election.etcd.key_file, config.election.etcd.password_file});
    LogSecurity(config.security, config.listen);
  };
  log_security();
  notify.Send(absl::StrCat("READY=1\nSTATUS=listens on ", where));

  // The service manager hears that the master's loop turns.
  const auto ping = [&] { (*master)->Ping([&notify] { notify.Send("WATCHDOG=1"); }); };
  const int signal = signals.Await(log_security, notify.watchdog() / 2, ping);
  notify.Send("STOPPING=1");
  Log(LogLevel::kInfo, absl::StrCat("stops: ", signal == SIGTERM ? "SIGTERM" : "SIGINT"));
  signals.Unblock();
  master->reset();
  return 0;
}

int CheckConfig(const MusterdCommand& command) {
  LogWarnings(command);
  const absl::Status status = CheckAllFiles(command.config);
  if (!status.ok()) return Fail(status);
  return PrintOut(MusterdSettingsText(command));
}

int Main(int argc, char** argv) {
  SetLogStyle(LogFormat::kPlain, "musterd");
  // A reader that is gone and a file that may not grow are errors of a write.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  const EnvMap env = EnvMapFrom(environ);
  const absl::StatusOr<MusterdCommand> command =
      ReadMusterdCommand({argv + std::min(argc, 1), argv + argc}, env, ReadConfigFile);
  if (!command.ok()) return Fail(command.status());
  switch (command->action) {
    case MusterdAction::kHelp:
      return PrintOut(MusterdHelp());
    case MusterdAction::kVersion:
      return PrintOut(absl::StrCat("musterd ", kVersion, "\n"));
    case MusterdAction::kCheck:
      return CheckConfig(*command);
    case MusterdAction::kServe:
      SetLogLevel(command->config.log_level);
      return Serve(*command, env);
  }
  return 70;
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  try {
    return muster::Main(argc, argv);
  } catch (const std::system_error& error) {
    // The C++ library's word for a thread that the kernel does not give.
    muster::Log(muster::LogLevel::kError,
                absl::StrCat("out of processes or memory: ", error.what()));
    return 71;
  }
}
