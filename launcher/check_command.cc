#include "launcher/check_command.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/host_port.h"
#include "base/log.h"
#include "base/print_out.h"
#include "launcher/exit_codes.h"
#include "launcher/help_text.h"
#include "launcher/machine_probe.h"
#include "launcher/option_table.h"
#include "launcher/option_values.h"
#include "launcher/options.h"
#include "launcher/plan.h"
#include "launcher/rdzv_conf.h"
#include "launcher/run_command.h"
#include "launcher/scheduler_defaults.h"

namespace muster {
namespace {

// False: the loader ends it, as where the LibTorch that it is linked with is gone.
bool Loads(const std::string& program) {
  constexpr int kNotLoaded = 127;
  const char* const argv[] = {program.c_str(), "--help", nullptr};
  posix_spawn_file_actions_t quiet;
  posix_spawn_file_actions_init(&quiet);
  posix_spawn_file_actions_addopen(&quiet, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t pid = 0;
  const int error =
      posix_spawn(&pid, program.c_str(), &quiet, nullptr, const_cast<char* const*>(argv), environ);
  posix_spawn_file_actions_destroy(&quiet);
  int status = 0;
  if (error != 0 || waitpid(pid, &status, 0) != pid) return false;
  return !WIFEXITED(status) || WEXITSTATUS(status) != kNotLoaded;
}

// What is run on each slot. NotFound: it is not installed.
absl::StatusOr<std::string> CheckProgramPath(const std::string& torch) {
  const std::string with_torch = PathBesideMuster("muster-check-torch");
  const bool has_torch = access(with_torch.c_str(), X_OK) == 0;
  if (torch == "yes" && has_torch) return with_torch;
  if (torch == "auto" && has_torch) {
    if (Loads(with_torch)) return with_torch;
    Log(LogLevel::kWarning, absl::StrCat(with_torch,
                                         " cannot be loaded (is its LibTorch gone? see "
                                         "ldd): LibTorch is not checked"));
  }
  if (torch == "yes") {
    return absl::NotFoundError(absl::StrCat("--torch yes needs ", with_torch,
                                            ", which is not there: install it (tools/install)"));
  }
  const std::string plain = PathBesideMuster("muster-check");
  if (access(plain.c_str(), X_OK) == 0) return plain;
  return absl::NotFoundError(
      absl::StrCat("muster check needs ", plain, ", which is not there: install it beside muster"));
}

// As `muster run` would be told. The check is a job of its own, also where the one it is made for
// runs; and nobody waits longer than it does.
absl::StatusOr<Options> RunOptionsFrom(const Options& check, const EnvMap& env) {
  absl::StatusOr<Options> run = ParseOptions({}, {});
  if (!run.ok()) return run.status();
  for (const OptionSpec& spec : CheckSpec().options) {
    if (FindSpec(spec.name) != nullptr) run->Set(spec.name, check.at(spec.name));
  }
  absl::Status adopted = AdoptSchedulerDefaults(env, &*run);
  if (!adopted.ok()) return adopted;
  const Setting id = run->at("rdzv-id");
  run->Set("rdzv-id", {absl::StrCat("check-", id.text), Source::kCommandLine, id.from});

  const Setting& timeout = check.at("timeout");
  for (const char* name : {"master-loss-timeout", "exit-barrier-timeout"}) {
    run->Set(name, {"30s", Source::kDefault, "default of check"});
  }
  const Setting conf = run->at("rdzv-conf");
  // Of a key that occurs twice the last counts: the user's.
  run->Set("rdzv-conf",
           {absl::StrCat("join_timeout=", timeout.text, conf.text.empty() ? "" : ",", conf.text),
            conf.source, conf.from});
  run->arguments = {"--timeout", timeout.text,          "--output", check.text("output"),
                    "--backend", check.text("backend"), "--torch",  check.text("torch")};
  return run;
}

// The program says why this node and the master did not find each other.
int BecomeExplanation(const AgentOptions& agent, bool is_lonely) {
  std::vector<std::string> words = agent.argv;
  const HostPort endpoint{agent.endpoint_host, agent.endpoint_port};
  const bool is_static = agent.endpoint_option == "--master-addr and --master-port";
  words.insert(words.end(), {is_lonely ? "--lonely" : "--unreached", ToString(endpoint), "--option",
                             is_static ? "--master-addr" : agent.endpoint_option});
  if (is_static && agent.fixed_group_rank == 0) words.emplace_back("--here");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  // The agent has blocked what it handles.
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execv(argv[0], argv.data());
  Log(LogLevel::kError, absl::StrCat("cannot start ", words[0], ": ", std::strerror(errno)));
  return kExitNotExecutable;
}

}  // namespace

int CheckCommand(const std::vector<std::string>& words, const EnvMap& env, char** argv) {
  const absl::StatusOr<Options> check = ParseOptions(words, env, CheckSpec());
  if (!check.ok()) return FailWith(check.status());
  if (check->help) return PrintOut(CommandHelpText(CheckSpec()));
  if (!check->program.empty()) {
    return FailWith(absl::InvalidArgumentError(absl::StrCat(
        "unexpected ", Quoted(check->program), ": muster check runs a program of its own")));
  }
  absl::StatusOr<Options> run = RunOptionsFrom(*check, env);
  if (!run.ok()) return FailWith(run.status());
  absl::StatusOr<std::string> program = CheckProgramPath(check->text("torch"));
  if (!program.ok()) return FailWith(program.status());
  run->program = *std::move(program);

  RealMachine machine;
  absl::StatusOr<Plan> plan = MakePlan(*run, env, machine);
  if (!plan.ok()) return FailWith(plan.status());
  plan->agent.told_exit_codes.Add(kExitFound);
  const bool has_own_time = ParseRdzvConf(check->text("rdzv-conf"))->join_timeout.has_value();
  if (!has_own_time) plan->agent.join_timeout_option = "--timeout";
  const int code = RunPlan(&*plan, check->on("dry-run"), argv);
  if (code != kExitUnavailable && code != kExitTimedOut) return code;
  return BecomeExplanation(plan->agent, code == kExitTimedOut);
}

}  // namespace muster
