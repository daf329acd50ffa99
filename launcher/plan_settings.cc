#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/duration_text.h"
#include "launcher/plan_parts.h"

namespace muster {

void DescribeSettings(const Options& options, Plan* plan) {
  const auto from = [&](absl::string_view option) { return options.at(option).from; };
  const auto line = [&](std::string name, std::string value, std::string source) {
    plan->lines.push_back({std::move(name), std::move(value), std::move(source)});
  };
  const JobSettings& settings = plan->agent.settings;
  std::string range = absl::StrCat(settings.nodes_min);
  if (settings.nodes_max != settings.nodes_min) absl::StrAppend(&range, ":", settings.nodes_max);
  line("nodes", range, from("nnodes"));
  line("restarts", absl::StrCat(settings.max_restarts), from("max-restarts"));
  line("start failures", absl::StrCat(settings.max_start_failures), from("max-start-failures"));
  line("restart delay", absl::StrCat("up to ", DurationText(settings.max_restart_delay)),
       from("max-restart-delay"));
  line("fatal exit codes", settings.fatal_exit_codes.ToString(), from("fatal-exit-codes"));
  line("stall timeout", DurationText(settings.stall_timeout), from("stall-timeout"));
  if (plan->agent.single_node()) return;
  std::string conf = from("rdzv-conf");
  if (plan->agent.election.has_value()) {
    const EtcdOptions& etcd = plan->agent.election->etcd;
    line("etcd", etcd.tls ? "https" : "http", conf);
    line("etcd keys", plan->agent.election->prefix, conf);
    line("leader lease", DurationText(plan->agent.election->lease), conf);
    for (const auto& [name, file] : {std::pair("etcd CA", etcd.ca_file),
                                     {"etcd certificate", etcd.cert_file},
                                     {"etcd key", etcd.key_file}}) {
      if (!file.empty()) line(name, file, conf);
    }
  }
  line("join timeout", DurationText(settings.join_timeout), conf);
  line("last call", DurationText(settings.last_call), conf);
  line("lease", DurationText(settings.lease()), conf);
  line("fencing", options.text("fencing"), from("fencing"));
  line("join policy", options.text("join-policy"), from("join-policy"));
  line("node unit", absl::StrCat(settings.node_unit), from("node-unit"));
  line("node failures", absl::StrCat(settings.max_node_failures), from("max-node-failures"));
  line("node failure window", DurationText(settings.node_failure_window),
       from("node-failure-window"));
  line("master loss timeout", DurationText(settings.master_loss_timeout),
       from("master-loss-timeout"));
  line("exit barrier timeout", DurationText(settings.exit_barrier_timeout),
       from("exit-barrier-timeout"));
}

}  // namespace muster
