#include "launcher/control_command.h"

#include <pwd.h>
#include <unistd.h>

#include <chrono>
#include <climits>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/endpoint_list.h"
#include "base/host_port.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/print_out.h"
#include "launcher/exit_codes.h"
#include "launcher/option_values.h"
#include "launcher/status_table.h"
#include "launcher/watch_patience.h"
#include "rendezvous/control_client.h"
#include "rendezvous/credential_files.h"
#include "rendezvous/security_log.h"
#include "rendezvous/settings.h"
#include "rendezvous/status_json.h"

namespace muster {
namespace {

constexpr int kPortDefault = 29400;

int Fail(const absl::Status& status) {
  const int code = FailWith(status);
  const bool is_about_the_job = absl::IsNotFound(status) || absl::IsFailedPrecondition(status);
  return is_about_the_job ? kExitNoSuchJob : code;
}

// "anna on login1": for the job's report.
std::string Who() {
  char host[HOST_NAME_MAX + 1] = "";
  gethostname(host, sizeof(host) - 1);
  const passwd* user = getpwuid(geteuid());
  const std::string name = user == nullptr ? absl::StrCat("user ", geteuid()) : user->pw_name;
  return absl::StrCat(name, " on ", host);
}

class Printer {
 public:
  Printer(std::string output, bool is_watch)
      : output_(std::move(output)),
        clears_(is_watch && output_ != "json" && isatty(STDOUT_FILENO)) {}

  // 0, or the exit code when it cannot be written.
  int operator()(const v1::StatusResponse& status) {
    const std::string text =
        output_ == "json" ? StatusJson(status) : StatusTable(status, output_ == "wide");
    const char* before = clears_ ? "\033[H\033[2J" : is_first_ || output_ == "json" ? "" : "\n";
    is_first_ = false;
    return PrintOut(before + text);
  }

 private:
  const std::string output_;
  const bool clears_;
  bool is_first_ = true;
};

bool HaveEnded(const v1::StatusResponse& status) {
  for (const v1::JobStatus& job : status.jobs()) {
    if (!job.has_verdict()) return false;
  }
  return true;
}

using FoundMaster = absl::StatusOr<std::unique_ptr<ControlClient>>;
using FindFunction = std::function<FoundMaster()>;

void WaitUntil(Time when) {
  RealClock clock;
  Mutex mutex;
  Condition never;
  MutexLock lock(&mutex);
  while (clock.Now() < when) clock.Wait(&mutex, &never, when);
}

// Through masters that come and go: who watches a job for days is not to miss its end.
int Watch(const Options& options, FoundMaster client, const FindFunction& find) {
  v1::StatusRequest request;
  request.set_job_id(options.program);
  Printer print(options.text("output"), /*is_watch=*/true);
  const Duration reconnect = ParseSpan(options.text("reconnect")).value();
  WatchPatience patience(reconnect);
  int printed = 0;
  const auto take = [&](const v1::StatusResponse& status) {
    patience.Heard();
    const bool is_over = !options.program.empty() && HaveEnded(status);
    printed = print(status);
    return printed == 0 && !is_over;
  };
  for (;;) {
    const absl::Status watched =
        client.ok() ? (*client)->WatchStatus(request, take) : client.status();
    if (watched.ok()) return printed;
    const bool is_news = !patience.is_lost();
    const std::optional<Time> next = patience.NextTry(RealClock().Now(), watched);
    if (!next) return Fail(watched);
    if (is_news) {
      Log(LogLevel::kWarning, absl::StrCat(watched.message(), "; looking for a master for up to ",
                                           DurationText(reconnect)));
    }
    WaitUntil(*next);
    client = find();
  }
}

int Status(const Options& options, FoundMaster client, const FindFunction& find) {
  if (options.on("watch")) return Watch(options, std::move(client), find);
  v1::StatusRequest request;
  request.set_job_id(options.program);
  const absl::StatusOr<v1::StatusResponse> status = (*client)->GetStatus(request);
  if (!status.ok()) return Fail(status.status());
  return Printer(options.text("output"), /*is_watch=*/false)(*status);
}

int Stop(const Options& options, ControlClient& client) {
  v1::StopJobRequest request;
  request.set_job_id(options.program);
  request.set_who(Who());
  const absl::Status stopped = client.StopJob(request);
  if (!stopped.ok()) return Fail(stopped);
  return PrintOut(absl::StrCat("job ", options.program, " is stopped\n"));
}

int Drain(const Options& options, ControlClient& client) {
  const std::string& node = options.text("node");
  int64_t at_most_ms = 0;
  if (options.given("at-most")) {
    const Duration at_most = ParsePositiveSpan(options.text("at-most")).value();
    at_most_ms = std::chrono::ceil<std::chrono::milliseconds>(at_most).count();
  }
  const auto fill = [&](auto* request) {
    request->set_job_id(options.program);
    request->set_who(Who());
    request->set_at_most_ms(at_most_ms);
  };
  v1::DrainJobRequest job_request;
  v1::DrainNodeRequest node_request;
  fill(&job_request);
  fill(&node_request);
  node_request.set_node_id(node);
  const absl::Status drained =
      node.empty() ? client.DrainJob(job_request) : client.DrainNode(node_request);
  if (!drained.ok()) return Fail(drained);
  const std::string what = node.empty() ? "" : absl::StrCat("node ", node, " of ");
  return PrintOut(absl::StrCat(what, "job ", options.program,
                               " ends at the next commit point of its workers\n"));
}

ClientSecurity SecurityOf(const Options& options) {
  ClientSecurity security;
  security.tls = {options.text("tls-ca"), options.text("tls-cert"), options.text("tls-key")};
  security.server_name = options.text("tls-server-name");
  security.token_file = options.text("token-file");
  return security;
}

bool IsAbsent(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

// Who names no endpoint may mean a job of one node, which has no master.
absl::Status WithAdvice(const absl::Status& status) {
  if (!IsAbsent(status)) return status;
  return absl::Status(
      status.code(), absl::StrCat(status.message(),
                                  ": name one with --rdzv-endpoint; --local shows your jobs here"));
}

// Whether they can be used, before anybody is dialled.
absl::Status CheckCredentials(const ClientSecurity& security,
                              const std::vector<HostPort>& endpoints) {
  for (const HostPort& endpoint : endpoints) {
    if (absl::Status fits = CheckSecurity(security, endpoint); !fits.ok()) return fits;
  }
  return CheckFiles(security.tls, security.token_file);
}

// The first of the endpoints that serves. One that stands by refuses whatever it is asked. Where
// none serves, something that is wrong says more than somebody who is not there.
FoundMaster FindMaster(const std::vector<HostPort>& endpoints, const ClientSecurity& security,
                       Duration timeout) {
  absl::Status failed;
  for (const HostPort& endpoint : endpoints) {
    absl::StatusOr<std::unique_ptr<ControlClient>> client =
        ControlClient::Connect(endpoint, security, timeout);
    absl::Status last = client.status();
    if (client.ok() && endpoints.size() > 1) {
      v1::StatusRequest request;
      request.set_summary(true);
      last = (*client)->GetStatus(request).status();
    }
    if (client.ok() && !IsAbsent(last)) return client;
    if (failed.ok() || IsAbsent(failed)) failed = last;
  }
  return failed;
}

}  // namespace

int ControlCommand(const CommandSpec& command, const Options& options) {
  const absl::StatusOr<std::vector<HostPort>> endpoints =
      ParseEndpoints(options.text("rdzv-endpoint"), kPortDefault);
  if (!endpoints.ok()) return Fail(endpoints.status());
  const ClientSecurity security = SecurityOf(options);
  if (const absl::Status usable = CheckCredentials(security, *endpoints); !usable.ok()) {
    return FailWith(usable);
  }
  LogExposure({security.token_file, security.tls.key});
  const Duration timeout = ParsePositiveSpan(options.text("timeout")).value();
  const FindFunction find = [&] { return FindMaster(*endpoints, security, timeout); };
  FoundMaster client = find();
  if (!client.ok()) {
    const bool is_status = std::string(command.name) == "status";
    const bool is_guess = is_status && !options.given("rdzv-endpoint");
    return Fail(is_guess ? WithAdvice(client.status()) : client.status());
  }
  const std::string name = command.name;
  if (name == "status") return Status(options, std::move(client), find);
  return name == "stop" ? Stop(options, **client) : Drain(options, **client);
}

}  // namespace muster
