#include "launcher/run_command.h"

#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/agent_loop.h"
#include "base/event_loop.h"
#include "base/log.h"
#include "base/print_out.h"
#include "base/version.h"
#include "launcher/cluster_door.h"
#include "launcher/completion.h"
#include "launcher/exit_codes.h"
#include "launcher/help_text.h"
#include "launcher/machine_probe.h"
#include "launcher/node_name.h"
#include "launcher/options.h"
#include "launcher/plan.h"
#include "rendezvous/local_rendezvous.h"
#include "rendezvous/reason.h"

namespace muster {
namespace {

// Makes the plan's base of a name into one that no other agent on this host has.
UniqueFd ClaimName(Plan* plan) {
  if (!plan->node_id_needs_slot) return UniqueFd();
  AgentOptions& agent = plan->agent;
  absl::StatusOr<NodeName> claimed = ClaimNodeName(NodeNameFolder(), agent.job_id, agent.node_id);
  if (!claimed.ok()) {
    // One agent on a host is by far the usual case, and needs no lock.
    Log(LogLevel::kWarning, std::string(claimed.status().message()));
    return UniqueFd();
  }
  agent.node_id = claimed->name;
  agent.node_lock_fd = claimed->lock.get();
  return std::move(claimed->lock);
}

std::unique_ptr<RendezvousClient> MakeLocal(const AgentOptions& options) {
  LocalRendezvous::Options local;
  local.job_id = options.job_id;
  local.seed = static_cast<uint64_t>(getpid());
  local.now = EventLoop::Now;
  local.log = [](const Reason& reason) { Log(LogLevel::kDebug, Sentence(reason)); };
  return std::make_unique<LocalRendezvous>(std::move(local));
}

}  // namespace

std::string PathBesideMuster(const char* name) {
  char own[PATH_MAX];
  const ssize_t size = readlink("/proc/self/exe", own, sizeof(own) - 1);
  const std::string path(own, size < 0 ? 0 : static_cast<size_t>(size));
  return path.substr(0, path.rfind('/') + 1) + name;
}

int BecomeCluster(char** argv) {
  const std::string path = PathBesideMuster("muster-cluster");
  execv(path.c_str(), argv);
  int error = errno;
  Log(LogLevel::kError,
      absl::StrCat("whatever speaks to other nodes needs ", path, ", which cannot be started (",
                   std::strerror(error), "): install it beside muster"));
  return error == ENOENT ? kExitNotFound : kExitNotExecutable;
}

int RunPlan(Plan* plan, bool is_dry_run, char** argv) {
  if (is_dry_run) return PrintOut(DryRunText(*plan));
  ClusterDoor* cluster = FindClusterDoor();
  if (plan->spans_nodes() && cluster == nullptr) return BecomeCluster(argv);

  SetLogLevel(plan->log_level);
  if (plan->spans_nodes()) {
    const absl::Status usable = cluster->CheckFiles(plan->agent);
    if (!usable.ok()) return FailWith(usable);
  }
  for (const std::string& warning : plan->warnings) Log(LogLevel::kWarning, warning);
  for (const std::string& remark : plan->remarks) Log(LogLevel::kDebug, remark);
  UniqueFd name_lock = ClaimName(plan);
  return RunAgent(plan->agent, plan->spans_nodes() ? cluster->factory() : MakeLocal);
}

int RunCommand(const std::vector<std::string>& words, const EnvMap& env, char** argv) {
  absl::StatusOr<Options> options = ParseOptions(words, env);
  if (!options.ok()) return FailWith(options.status());
  if (options->help) return PrintOut(RunHelpText());

  if (options->on("version")) return PrintOut(absl::StrCat("muster ", kVersion, "\n"));

  const std::string& shell = options->text("print-completion");
  if (!shell.empty()) return PrintOut(CompletionScript(shell));

  RealMachine machine;
  absl::StatusOr<Plan> plan = MakePlan(*options, env, machine);
  if (!plan.ok()) return FailWith(plan.status());
  return RunPlan(&*plan, options->on("dry-run"), argv);
}

}  // namespace muster
