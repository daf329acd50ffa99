// musterd: a standing master for the jobs of a cluster. docs/OPERATIONS.md.

#include <absl/strings/str_cat.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
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
#include "base/event_loop.h"
#include "base/log.h"
#include "base/print_out.h"
#include "base/unique_fd.h"
#include "base/version.h"
#include "rendezvous/credential_files.h"
#include "rendezvous/file_store.h"
#include "rendezvous/musterd_config.h"
#include "rendezvous/musterd_documents.h"
#include "rendezvous/musterd_state.h"
#include "rendezvous/reason.h"
#include "rendezvous/service_notify.h"
#include "rendezvous/standing_master.h"

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

// What an operator should know of the files that the master trusts, as they are now; it reads them
// again by itself before it uses them.
void LogSecurity(const MusterdConfig& config) {
  const ServerSecurity& security = config.security;
  for (const std::string& file : {security.token_file, security.tls.key}) {
    if (const std::string problem = ExposureOf(file); !problem.empty()) {
      Log(LogLevel::kWarning, problem);
    }
  }
  absl::Status tokens;
  if (!security.token_file.empty()) tokens = ReadTokens(security.token_file).status();
  const absl::StatusOr<std::string> certificate = CheckTlsFiles(security.tls);
  for (const absl::Status& status : {tokens, certificate.status()}) {
    if (status.ok()) continue;
    Log(LogLevel::kWarning, absl::StrCat(status.message(), ": what was read before stays"));
  }
  if (certificate.ok() && security.has_tls()) Log(LogLevel::kInfo, *certificate);
  if (security.asks_who()) return;
  const bool is_open = !IsLoopbackHost(config.listen.host);
  Log(is_open ? LogLevel::kWarning : LogLevel::kInfo,
      "agents are not asked who they are (--tls-ca, --token-file)");
}

// Waits for the signal to stop, and tells the service manager meanwhile that the master's loop
// turns.
int AwaitStop(int signals_fd, const MusterdConfig& config, const ServiceNotify& notify,
              StandingMaster* master) {
  EventLoop loop;
  int signal = 0;
  loop.Watch(signals_fd, EPOLLIN, [&](uint32_t) {
    signalfd_siginfo info{};
    if (read(signals_fd, &info, sizeof(info)) != sizeof(info)) return;
    if (info.ssi_signo == SIGHUP) {
      LogSecurity(config);
    } else {
      signal = static_cast<int>(info.ssi_signo);
    }
  });
  const Duration pulse = notify.watchdog() / 2;
  Time pulse_at = pulse > Duration::zero() ? EventLoop::Now() : kNever;
  while (signal == 0) {
    if (EventLoop::Now() >= pulse_at) {
      master->Ping([&notify] { notify.Send("WATCHDOG=1"); });
      pulse_at = EventLoop::Now() + pulse;
    }
    loop.RunOnce(pulse_at);
  }
  return signal;
}

int Serve(const MusterdCommand& command, const EnvMap& env) {
  // Blocked before there are threads, so that only AwaitStop takes them.
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, number);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  const UniqueFd signals_fd(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));

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
  LogSecurity(command.config);
  notify.Send(absl::StrCat("READY=1\nSTATUS=listens on ", where));

  const int signal = AwaitStop(signals_fd.get(), command.config, notify, master->get());
  notify.Send("STOPPING=1");
  Log(LogLevel::kInfo, absl::StrCat("stops: ", signal == SIGTERM ? "SIGTERM" : "SIGINT"));
  // From here on a second signal ends the process at once.
  sigprocmask(SIG_UNBLOCK, &signals, nullptr);
  master->reset();
  return 0;
}

int Main(int argc, char** argv) {
  SetLogStyle(LogFormat::kPlain, "musterd");
  std::signal(SIGPIPE, SIG_IGN);
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
      return PrintOut(MusterdSettingsText(*command));
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
