// musterd: a standing master for the jobs of a cluster. docs/OPERATIONS.md.

#include <absl/strings/str_cat.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "base/clock.h"
#include "base/env.h"
#include "base/log.h"
#include "base/print_out.h"
#include "base/version.h"
#include "rendezvous/credential_files.h"
#include "rendezvous/file_store.h"
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

int Fail(const absl::Status& status) {
  Log(LogLevel::kError, std::string(status.message()));
  return ExitCodeOf(status);
}

absl::StatusOr<std::string> ReadConfigFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (file.is_open() && !file.bad()) return text;
  return absl::InvalidArgumentError(
      absl::StrCat("--config: cannot read ", path, ": ", std::strerror(errno)));
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
  if (const absl::Status status = state.Open(command.config.state_dir); !status.ok()) {
    Log(LogLevel::kError, std::string(status.message()));
    return ExitCodeOfStateError(status);
  }
  absl::StatusOr<std::unique_ptr<StandingMaster>> master =
      StandingMaster::Start(&clock, command.config, &state);
  if (!master.ok()) return Fail(master.status());
  SetLogStyle(command.config.log_format, "musterd");
  for (const std::string& warning : command.warnings) Log(LogLevel::kWarning, warning);
  const std::string where = ToString({command.config.listen.host, (*master)->port()});
  Log(LogLevel::kInfo, absl::StrCat("musterd ", kVersion, " listens on ", where));
  if ((*master)->http_port() != 0) {
    const HostPort http{command.config.http->host, (*master)->http_port()};
    Log(LogLevel::kInfo, absl::StrCat("shows itself over HTTP on ", ToString(http)));
  }
  const auto log_security = [&] { LogSecurity(command.config.security, command.config.listen); };
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
  const ServerSecurity& security = command.config.security;
  for (const absl::Status& status :
       {CheckFiles(security.tls, security.token_file), CheckFiles(command.config.election.etcd)}) {
    if (!status.ok()) return Fail(status);
  }
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
