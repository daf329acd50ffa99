#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "agent/line_prefix.h"
#include "base/exit_status.h"
#include "base/one_line.h"
#include "launcher/option_values.h"
#include "launcher/plan_parts.h"

namespace muster {
namespace {

constexpr Duration kKubernetesGrace = std::chrono::seconds(25);

// The options whose value is shown as it was given.
constexpr std::pair<const char*, const char*> kShown[] = {
    {"log folder", "log-dir"},
    {"redirects", "redirects"},
    {"tee", "tee"},
    {"line prefix", "log-line-prefix-template"},
    {"log file size", "log-max-bytes"},
    {"log files", "log-max-files"},
    {"console ranks", "local-ranks-filter"},
    {"stdout filters", "duplicate-stdout-filters"},
    {"stderr filters", "duplicate-stderr-filters"},
    {"report file", "report-file"},
    {"standard input", "stdin"},
    {"orphan grace", "orphan-grace"},
    {"signals to handle", "signals-to-handle"},
};

void WarnOfUnknownMacros(const std::string& text, Plan* plan) {
  const LinePrefix prefix(text);
  if (prefix.unknown_macros().empty()) return;
  plan->warnings.push_back(absl::StrCat(
      "the macro ", OneLine(prefix.unknown_macros().front()),
      " of --log-line-prefix-template is not known and stays as it is: known are ${role_name} ",
      "${local_rank} ${rank} ${hostname} ${node} ${generation} ${pid} ${time}"));
}

void WarnOfRanks(const Options& options, absl::string_view option, int rank, Plan* plan) {
  if (rank < plan->agent.slots) return;
  plan->warnings.push_back(absl::StrCat(options.at(option).from, " names local rank ", rank,
                                        ", and this node has ", plan->agent.slots, " workers"));
}

void PlanOutput(const Options& options, Plan* plan) {
  LogOptions& log = plan->agent.log;
  log.log_dir = options.text("log-dir");
  log.redirects = ParseStreams(options.text("redirects")).value();
  log.tee = ParseStreams(options.text("tee")).value();
  log.bytes_max = ParseBytes(options.text("log-max-bytes")).value();
  log.files_max = ParseWhole(options.text("log-max-files"), 1, 1000).value();
  log.prefix_template = options.text("log-line-prefix-template");
  log.local_ranks_filter = ParseRanks(options.text("local-ranks-filter")).value();
  log.duplicate_stdout_filters = ParseFilters(options.text("duplicate-stdout-filters")).value();
  log.duplicate_stderr_filters = ParseFilters(options.text("duplicate-stderr-filters")).value();
  WarnOfUnknownMacros(log.prefix_template, plan);
  for (const auto& [rank, streams] : log.redirects.by_local_rank) {
    WarnOfRanks(options, "redirects", rank, plan);
  }
  for (const auto& [rank, streams] : log.tee.by_local_rank) WarnOfRanks(options, "tee", rank, plan);
  for (int rank : log.local_ranks_filter) WarnOfRanks(options, "local-ranks-filter", rank, plan);
}

absl::Status PlanStdin(const Options& options, Plan* plan) {
  StdinChoice choice = ParseStdin(options.text("stdin")).value();
  plan->agent.stdin_mode = choice.mode;
  plan->agent.stdin_local_rank = choice.local_rank;
  if (choice.local_rank < plan->agent.slots) return absl::OkStatus();
  const int slots = plan->agent.slots;
  return absl::InvalidArgumentError(
      absl::StrCat(options.at("stdin").from, ": there is no local rank ", choice.local_rank,
                   slots == 1 ? " on a node of one worker: give 0"
                              : absl::StrCat(" among ", slots, " workers: give 0 to ", slots - 1)));
}

// A signal that ends the job is not also one that leaves it running.
absl::Status PlanSignals(const Options& options, Plan* plan) {
  AgentOptions& agent = plan->agent;
  agent.signals_to_handle = ParseSignals(options.text("signals-to-handle")).value();
  agent.signals_to_forward = ParseSignals(options.text("signals-to-forward")).value();
  std::vector<std::string> names;
  for (int signal : agent.signals_to_handle) {
    auto same = std::find(agent.signals_to_forward.begin(), agent.signals_to_forward.end(), signal);
    if (same == agent.signals_to_forward.end()) continue;
    if (options.given("signals-to-forward")) {
      return absl::InvalidArgumentError(absl::StrCat(SignalName(signal),
                                                     " is in --signals-to-handle and in "
                                                     "--signals-to-forward: leave it out of one"));
    }
    agent.signals_to_forward.erase(same);
  }
  for (int signal : agent.signals_to_forward) names.push_back(SignalName(signal));
  plan->lines.push_back({"signals to forward", names.empty() ? "none" : absl::StrJoin(names, ","),
                         options.at("signals-to-forward").from});
  return absl::OkStatus();
}

// With strict fencing nobody's workers may outlive the fence, which is a tenth longer than the
// time-out: half of that is for clocks, the other half for workers whose muster was killed.
absl::Status FitIntoFence(const Options& options, AgentOptions* agent) {
  const JobSettings& settings = agent->settings;
  const Duration most = settings.master_loss_timeout / 20;
  const bool is_fenced = !agent->single_node() && settings.fencing == Fencing::kStrict;
  if (!is_fenced || agent->orphan_grace <= most) return absl::OkStatus();
  if (options.given("orphan-grace")) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.at("orphan-grace").from, " is ", DurationText(agent->orphan_grace),
                     ": with strict fencing give at most a twentieth of --master-loss-timeout, ",
                     DurationText(most)));
  }
  agent->orphan_grace = most;
  return absl::OkStatus();
}

absl::Status PlanGrace(const Options& options, const EnvMap& env, Plan* plan) {
  AgentOptions& agent = plan->agent;
  const Setting& grace = options.at("shutdown-timeout");
  std::string from = grace.from;
  if (!grace.text.empty()) {
    agent.stop_grace = ParseSpan(grace.text).value();
  } else if (FindVariable(env, "KUBERNETES_SERVICE_HOST") != nullptr) {
    // Pods are killed 30 s after their SIGTERM.
    agent.stop_grace = kKubernetesGrace;
    from = "default in Kubernetes";
  }
  plan->lines.push_back({"shutdown timeout", DurationText(agent.stop_grace), from});
  agent.orphan_grace = ParseSpan(options.text("orphan-grace")).value();
  return FitIntoFence(options, &agent);
}

void PlanReport(const Options& options, const EnvMap& env, Plan* plan) {
  AgentOptions& agent = plan->agent;
  agent.program = options.program;
  agent.report_file = options.text("report-file");
  const Setting& log = options.at("termination-log");
  std::string from = log.from;
  agent.termination_log = log.text;
  if (!options.given("termination-log") &&
      FindVariable(env, "KUBERNETES_SERVICE_HOST") != nullptr) {
    agent.termination_log = "/dev/termination-log";
    from = "default in Kubernetes";
  }
  plan->lines.push_back({"termination log", agent.termination_log, from});
  const std::string* error_file = FindVariable(env, "TORCHELASTIC_ERROR_FILE");
  if (error_file == nullptr) return;
  agent.error_file = *error_file;
  plan->lines.push_back({"error file", *error_file, "TORCHELASTIC_ERROR_FILE"});
}

void RemarkOnIgnored(const Options& options, Plan* plan) {
  if (options.given("monitor-interval")) {
    plan->remarks.push_back(
        absl::StrCat(options.at("monitor-interval").from, " has no effect: nothing is polled"));
  }
  if (options.given("start-method")) {
    plan->remarks.push_back(absl::StrCat(options.at("start-method").from,
                                         " has no effect: workers are programs of their own"));
  }
}

}  // namespace

absl::Status PlanRun(const Options& options, const EnvMap& env, Plan* plan) {
  PlanOutput(options, plan);
  absl::Status status = PlanStdin(options, plan);
  if (status.ok()) status = PlanSignals(options, plan);
  if (status.ok()) status = PlanGrace(options, env, plan);
  if (!status.ok()) return status;
  PlanReport(options, env, plan);
  RemarkOnIgnored(options, plan);
  for (const auto& [name, option] : kShown) {
    plan->lines.push_back({name, options.text(option), options.at(option).from});
  }
  plan->lines.push_back({"log level", options.text("log-level"), options.at("log-level").from});
  return absl::OkStatus();
}

}  // namespace muster
