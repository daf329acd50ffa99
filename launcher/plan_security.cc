#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/value_text.h"
#include "launcher/plan_parts.h"

namespace muster {
namespace {

// Paths, and nothing of what is in the files.
void Describe(const Options& options, Plan* plan) {
  for (const char* option : {"tls-ca", "tls-cert", "tls-key", "tls-server-name", "token-file",
                             "allowed-peers", "require-auth"}) {
    const Setting& setting = options.at(option);
    if (!setting.text.empty()) plan->lines.push_back({option, setting.text, setting.from});
  }
}

}  // namespace

absl::Status PlanSecurity(const Options& options, Plan* plan) {
  if (!plan->spans_nodes()) return absl::OkStatus();
  AgentOptions& agent = plan->agent;
  agent.security.tls.ca = options.text("tls-ca");
  agent.security.tls.cert = options.text("tls-cert");
  agent.security.tls.key = options.text("tls-key");
  agent.security.server_name = options.text("tls-server-name");
  agent.security.token_file = options.text("token-file");
  if (const std::string& names = options.text("allowed-peers"); !names.empty()) {
    agent.allowed_peers = ParseNames(names).value();
  }
  agent.require_auth = options.on("require-auth");

  // Those of etcd tell as well whether the job stays on this host.
  for (const HostPort& endpoint : agent.endpoints()) {
    if (absl::Status status = CheckSecurity(agent.security, endpoint); !status.ok()) return status;
  }
  const bool may_host = agent.host_master != HostMaster::kNo;
  if (!agent.allowed_peers.empty() && agent.security.tls.cert.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.at("allowed-peers").from,
                     " is for a node that may host the master, "
                     "and such a node needs --tls-cert and --tls-key"));
  }
  if (agent.require_auth && may_host && !agent.security.has_tls() &&
      agent.security.token_file.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        options.at("require-auth").from,
        ": there is nothing by which this node could tell others "
        "from strangers: give --tls-ca, --tls-cert and --tls-key, or is_host=0 in --rdzv-conf"));
  }
  const bool has_to_host = agent.host_master == HostMaster::kYes || agent.election.has_value();
  if (has_to_host && agent.security.has_tls() && agent.security.tls.cert.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        agent.election.has_value() ? "any node can be elected: one" : "is_host: a node",
        " that hosts the master over TLS needs --tls-cert and --tls-key"));
  }
  Describe(options, plan);
  return absl::OkStatus();
}

}  // namespace muster
