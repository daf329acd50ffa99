#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/endpoint_list.h"
#include "base/host_port.h"
#include "launcher/option_values.h"
#include "launcher/plan_parts.h"
#include "launcher/rdzv_conf.h"

namespace muster {
namespace {

constexpr int kStaticMasterPort = 29500;  // torchrun's
constexpr int kEndpointPort = 29400;      // torchrun's of c10d
constexpr int kEtcdPort = 2379;
constexpr char kEtcdPrefix[] = "/muster";
constexpr int kPortDistance = 100;  // of the master from MASTER_PORT, in static mode
constexpr int kPrivilegedPorts = 1024;
constexpr Duration kStaticJoinTimeout = std::chrono::seconds(900);  // torchrun's
constexpr Duration kStrictLossTimeout = std::chrono::seconds(30);

enum class Mode {
  kSingleNode,  // no master that others can reach
  kStatic,      // ranks and master address are given
  kDynamic,     // nodes meet at an endpoint
};

class RendezvousPlanner {
 public:
  RendezvousPlanner(const Options& options, const EnvMap& env, MachineProbe& machine, Plan* plan)
      : options_(options), env_(env), machine_(machine), plan_(*plan), agent_(plan->agent) {}

  absl::Status Run() {
    nodes_ = ParseNodes(options_.text("nnodes")).value();
    master_port_given_ = Number("master-port") != 0;
    absl::Status status = ChooseMode();
    if (status.ok()) status = CheckNodeRank();
    if (status.ok()) status = SetMasterAddress();
    if (status.ok()) status = SetJobId();
    if (!status.ok()) return status;
    SetNodeId();
    return SetSettings();
  }

 private:
  absl::Status Bad(const std::string& text) { return absl::InvalidArgumentError(text); }
  std::string From(absl::string_view option) { return options_.at(option).from; }
  // Of an option that the table has checked.
  int Number(absl::string_view option) {
    int number = 0;
    static_cast<void>(absl::SimpleAtoi(options_.text(option), &number));
    return number;
  }
  void Line(std::string name, std::string value, std::string from) {
    plan_.lines.push_back({std::move(name), std::move(value), std::move(from)});
  }

  absl::Status ChooseMode() {
    const std::string& endpoint = options_.text("rdzv-endpoint");
    if (options_.on("standalone")) return ChooseStandalone(endpoint);
    const Backend backend = ParseBackend(options_.text("rdzv-backend")).value();
    if (backend == Backend::kEtcd) return ChooseEtcd(endpoint);
    if (!endpoint.empty()) return ChooseEndpoint(endpoint);
    if (nodes_.max == 1) return ChooseSingleNode(From("nnodes"));
    if (backend == Backend::kStatic) return ChooseStatic();
    mode_ = Mode::kDynamic;
    agent_.endpoint_host = "localhost";
    agent_.endpoint_port = kEndpointPort;
    plan_.warnings.push_back(absl::StrCat("no --rdzv-endpoint: the nodes meet at localhost:",
                                          kEndpointPort, ", which other machines cannot reach"));
    return absl::OkStatus();
  }

  absl::Status ChooseStandalone(const std::string& endpoint) {
    if (nodes_.min > 1) {
      return Bad(absl::StrCat(From("standalone"), " runs on one node, and ", From("nnodes"),
                              " asks for ", nodes_.min, ": drop one of them"));
    }
    if (nodes_.max > 1) {
      plan_.warnings.push_back(absl::StrCat(From("standalone"), " runs on one node: MAX ",
                                            nodes_.max, " of ", From("nnodes"), " is ignored"));
    }
    if (!endpoint.empty()) {
      plan_.remarks.push_back(
          absl::StrCat(From("rdzv-endpoint"), " is ignored: ", From("standalone"), " needs none"));
    }
    return ChooseSingleNode(From("standalone"));
  }

  absl::Status ChooseSingleNode(std::string from) {
    mode_ = Mode::kSingleNode;
    nodes_ = {1, 1};
    Line("rendezvous", "none: one node", std::move(from));
    return absl::OkStatus();
  }

  absl::Status ChooseEtcd(const std::string& text) {
    absl::StatusOr<std::vector<HostPort>> endpoints = ParseEndpoints(text, kEtcdPort);
    if (!endpoints.ok()) {
      return Bad(absl::StrCat(From("rdzv-endpoint"), ": ", endpoints.status().message()));
    }
    for (const HostPort& endpoint : *endpoints) {
      if (endpoint.port != 0) continue;
      return Bad(absl::StrCat(From("rdzv-endpoint"), ": port 0 of ", ToString(endpoint),
                              " is no port of etcd: give the port"));
    }
    mode_ = Mode::kDynamic;
    agent_.endpoint_host = endpoints->front().host;
    agent_.endpoint_port = endpoints->front().port;
    agent_.other_endpoints.assign(endpoints->begin() + 1, endpoints->end());
    agent_.election.emplace();
    return absl::OkStatus();
  }

  absl::Status ChooseEndpoint(const std::string& text) {
    absl::StatusOr<std::vector<HostPort>> endpoints = ParseEndpoints(text, kEndpointPort);
    if (!endpoints.ok()) {
      return Bad(absl::StrCat(From("rdzv-endpoint"), ": ", endpoints.status().message()));
    }
    const HostPort* endpoint = &endpoints->front();
    if (endpoints->size() > 1) {
      if (absl::Status status = ChooseOthers(*endpoints); !status.ok()) return status;
    } else if (endpoint->port == 0) {
      return ChooseAnyPort(text);
    }
    bool has_rank = options_.given("node-rank") ||
                    (options_.given("rdzv-backend") && options_.text("rdzv-backend") == "static");
    mode_ = has_rank && options_.text("rdzv-backend") == "static" ? Mode::kStatic : Mode::kDynamic;
    agent_.endpoint_host = endpoint->host;
    agent_.endpoint_port = endpoint->port;
    if (options_.given("rdzv-endpoint")) agent_.endpoint_option = From("rdzv-endpoint");
    return absl::OkStatus();
  }

  // Several endpoints are those of standing masters: no agent hosts one.
  absl::Status ChooseOthers(const std::vector<HostPort>& endpoints) {
    for (const HostPort& endpoint : endpoints) {
      if (endpoint.port != 0) continue;
      return Bad(absl::StrCat(From("rdzv-endpoint"), ": port 0 of ", ToString(endpoint),
                              " means any port, which cannot be known: give a port"));
    }
    agent_.other_endpoints.assign(endpoints.begin() + 1, endpoints.end());
    return absl::OkStatus();
  }

  // Port 0 is a port that nobody else can know.
  absl::Status ChooseAnyPort(const std::string& text) {
    if (nodes_.min > 1) {
      return Bad(absl::StrCat(From("rdzv-endpoint"), ": port 0 in ", Quoted(text),
                              " means any port, which other nodes cannot know: give a port"));
    }
    if (nodes_.max > 1) {
      plan_.warnings.push_back(absl::StrCat(From("rdzv-endpoint"), ": no other node can join at ",
                                            "port 0: the job stays on one node"));
    }
    return ChooseSingleNode(From("rdzv-endpoint") + " with port 0");
  }

  absl::Status ChooseStatic() {
    mode_ = Mode::kStatic;
    int master_port = master_port_given_ ? Number("master-port") : kStaticMasterPort;
    agent_.endpoint_host = ParseHost(options_.text("master-addr")).value();
    agent_.endpoint_port = master_port >= kPrivilegedPorts + kPortDistance
                               ? master_port - kPortDistance
                               : master_port + kPortDistance;
    agent_.endpoint_option = "--master-addr and --master-port";
    return absl::OkStatus();
  }

  absl::Status CheckNodeRank() {
    int rank = Number("node-rank");
    if (mode_ == Mode::kDynamic) {
      if (rank != 0 && options_.given("node-rank")) {
        plan_.warnings.push_back(absl::StrCat(
            From("node-rank"), " has no effect at an endpoint: the master gives the ranks"));
      }
      return absl::OkStatus();
    }
    if (rank >= nodes_.max) {
      return Bad(absl::StrCat(From("node-rank"), ": rank ", rank, " of ", nodes_.max,
                              nodes_.max == 1 ? " node" : " nodes",
                              ": ranks begin at 0: ", "correct it or --nnodes"));
    }
    if (mode_ == Mode::kSingleNode) return absl::OkStatus();
    agent_.fixed_group_rank = rank;
    if (nodes_.min != nodes_.max) {
      plan_.warnings.push_back(absl::StrCat("with given ranks all ", nodes_.max,
                                            " nodes are needed: MIN of ", From("nnodes"),
                                            " is ignored"));
      nodes_.min = nodes_.max;
    }
    return absl::OkStatus();
  }

  absl::Status SetMasterAddress() {
    if (mode_ != Mode::kSingleNode) {
      const bool is_derived = !options_.given("rdzv-backend") && mode_ == Mode::kDynamic;
      Line("rendezvous", ModeText(), From(is_derived ? "rdzv-endpoint" : "rdzv-backend"));
      Line("endpoint", ToString(agent_.endpoints()),
           options_.text("rdzv-endpoint").empty() ? "derived" : From("rdzv-endpoint"));
    }
    bool fixed = master_port_given_;
    if (mode_ == Mode::kStatic) {
      fixed = master_port_given_ || options_.given("master-addr") ||
              options_.text("rdzv-endpoint").empty();
    }
    if (mode_ == Mode::kDynamic || !fixed) {
      RemarkOnUnusedAddress();
      Line("MASTER_ADDR, MASTER_PORT",
           mode_ == Mode::kSingleNode ? "127.0.0.1, any free port" : "of group rank 0", "default");
      return absl::OkStatus();
    }
    agent_.fixed_master_addr = ParseHost(options_.text("master-addr")).value();
    agent_.fixed_master_port = master_port_given_ ? Number("master-port") : kStaticMasterPort;
    if (agent_.fixed_master_port == agent_.endpoint_port &&
        agent_.fixed_master_addr == agent_.endpoint_host) {
      return Bad(absl::StrCat(From("rdzv-endpoint"), " is the address of --master-addr and ",
                              "--master-port, which the workers need: drop it or change the port"));
    }
    Line("MASTER_ADDR", agent_.fixed_master_addr, From("master-addr"));
    Line("MASTER_PORT", absl::StrCat(agent_.fixed_master_port), From("master-port"));
    // Rank 0's worker listens there, which this node starts.
    if (mode_ == Mode::kStatic && agent_.fixed_group_rank != 0) return absl::OkStatus();
    absl::Status port = machine_.CheckPortFree(agent_.fixed_master_addr, agent_.fixed_master_port);
    if (port.ok()) return port;
    const bool is_alone = mode_ == Mode::kSingleNode;
    return absl::Status(port.code(),
                        absl::StrCat(port.message(), ": choose another --master-port",
                                     is_alone ? ", or none for any free port" : " on all nodes"));
  }

  const char* ModeText() const {
    if (agent_.election.has_value()) return "etcd";
    return mode_ == Mode::kStatic ? "static" : "c10d";
  }

  void RemarkOnUnusedAddress() {
    for (const char* option : {"master-addr", "master-port"}) {
      if (!options_.given(option)) continue;
      std::string remark = absl::StrCat(
          From(option), " is not used: ",
          mode_ == Mode::kDynamic ? "the master gives an address in each generation"
                                  : "without a port the job takes any free port on 127.0.0.1");
      (mode_ == Mode::kDynamic ? plan_.warnings : plan_.remarks).push_back(std::move(remark));
    }
  }

  absl::Status SetJobId() {
    const Setting& id = options_.at("rdzv-id");
    agent_.job_id = id.text;
    std::string from = id.from;
    if (mode_ != Mode::kSingleNode && id.text.empty()) {
      return Bad(absl::StrCat(id.from, " is empty: give the job a name, the same on all nodes"));
    }
    if (mode_ != Mode::kSingleNode && id.source == Source::kDefault) {
      plan_.warnings.push_back(
          "no --rdzv-id: the job is called 'none', and another job without one at the same "
          "endpoint would be taken for the same job");
    }
    bool own = mode_ == Mode::kSingleNode && agent_.fixed_master_port == 0;
    if (id.text.empty() || (own && !options_.given("rdzv-id"))) {
      agent_.job_id = machine_.RandomId();
      from = "random";
    }
    Line("job id", agent_.job_id, from);
    return absl::OkStatus();
  }

  void SetNodeId() {
    agent_.local_addr =
        options_.text("local-addr").empty() ? "" : ParseHost(options_.text("local-addr")).value();
    agent_.topology_key = options_.text("topology-key");
    std::string from = From("node-id");
    agent_.node_id = options_.text("node-id");
    if (agent_.node_id.empty() && mode_ == Mode::kStatic) {
      agent_.node_id = absl::StrCat("node", agent_.fixed_group_rank);
      from = From("node-rank");
    }
    for (const char* variable : {"SLURM_NODEID", "JOB_COMPLETION_INDEX"}) {
      const std::string* number = FindVariable(env_, variable);
      if (!agent_.node_id.empty() || mode_ != Mode::kDynamic || number == nullptr) continue;
      if (!ParseWhole(*number, 0, 1 << 30).ok()) continue;
      agent_.node_id = absl::StrCat("node", *number);
      plan_.node_id_needs_slot = true;
      from = variable;
    }
    if (agent_.node_id.empty()) {
      agent_.node_id = machine_.HostName();
      plan_.node_id_needs_slot = mode_ == Mode::kDynamic;
      from = "host name";
    }
    Line("node id", agent_.node_id, from);
    if (!agent_.local_addr.empty()) Line("local address", agent_.local_addr, From("local-addr"));
    if (!agent_.topology_key.empty()) {
      Line("topology key", agent_.topology_key, From("topology-key"));
    }
  }

  absl::Status SetSettings() {
    JobSettings& settings = agent_.settings;
    settings.nodes_min = nodes_.min;
    settings.nodes_max = nodes_.max;
    settings.max_restarts = Number("max-restarts");
    settings.max_start_failures = Number("max-start-failures");
    settings.max_restart_delay = ParseSpan(options_.text("max-restart-delay")).value();
    settings.fatal_exit_codes = ParseExitCodes(options_.text("fatal-exit-codes")).value();
    settings.stall_timeout = ParseSpan(options_.text("stall-timeout")).value();
    settings.fencing = ParseFencing(options_.text("fencing")).value();
    settings.join_policy = ParseJoinPolicy(options_.text("join-policy")).value();
    settings.node_unit = Number("node-unit");
    settings.max_node_failures = Number("max-node-failures");
    settings.node_failure_window = ParseSpan(options_.text("node-failure-window")).value();
    settings.exit_barrier_timeout = ParseSpan(options_.text("exit-barrier-timeout")).value();
    const std::string& loss = options_.text("master-loss-timeout");
    if (!loss.empty()) settings.master_loss_timeout = ParseSpan(loss).value();
    if (loss.empty() && settings.fencing == Fencing::kStrict) {
      settings.master_loss_timeout = kStrictLossTimeout;
    }
    absl::Status applied = ApplyRdzvConf(ParseRdzvConf(options_.text("rdzv-conf")).value());
    if (!applied.ok()) return applied;
    std::string problem = DescribeError(settings);
    if (!problem.empty()) return Bad(problem);
    DescribeSettings(options_, &plan_);
    return absl::OkStatus();
  }

  absl::Status ApplyRdzvConf(const RdzvConf& conf) {
    JobSettings& settings = agent_.settings;
    if (mode_ == Mode::kStatic) settings.join_timeout = conf.timeout.value_or(kStaticJoinTimeout);
    settings.join_timeout = conf.join_timeout.value_or(settings.join_timeout);
    settings.last_call = conf.last_call_timeout.value_or(settings.last_call);
    settings.keep_alive_interval = conf.keep_alive_interval.value_or(settings.keep_alive_interval);
    settings.keep_alive_max_attempt =
        conf.keep_alive_max_attempt.value_or(settings.keep_alive_max_attempt);
    agent_.host_master = conf.host_master;
    if (!agent_.other_endpoints.empty() && conf.host_master == HostMaster::kYes) {
      return Bad(absl::StrCat(From("rdzv-conf"), ": is_host asks for a master on this node, and ",
                              From("rdzv-endpoint"), " names several: drop one of them"));
    }
    if (conf.timeout.has_value() && mode_ == Mode::kDynamic) {
      plan_.warnings.push_back(absl::StrCat(From("rdzv-conf"), ": timeout has no effect at an ",
                                            "endpoint: did you mean join_timeout?"));
    }
    if (agent_.election.has_value()) {
      if (absl::Status status = SetElection(conf.election); !status.ok()) return status;
    } else if (!conf.of_etcd.empty()) {
      plan_.warnings.push_back(absl::StrCat(From("rdzv-conf"), ": ", conf.of_etcd.front(),
                                            " has no effect without --rdzv-backend etcd"));
    }
    for (const std::string& key : conf.without_effect) {
      plan_.remarks.push_back(
          absl::StrCat(From("rdzv-conf"), ": ", key, " has no effect: there is nothing to set"));
    }
    return absl::OkStatus();
  }

  absl::Status SetElection(const EtcdElectionOptions& election) {
    agent_.election = election;
    agent_.election->etcd.endpoints = agent_.endpoints();
    agent_.election->prefix =
        EtcdJobPrefix(election.prefix.empty() ? kEtcdPrefix : election.prefix, agent_.job_id);
    const absl::Status fits = CheckEtcdOptions(agent_.election->etcd);
    return fits.ok() ? fits : Bad(absl::StrCat(From("rdzv-conf"), ": ", fits.message()));
  }

  const Options& options_;
  const EnvMap& env_;
  MachineProbe& machine_;
  Plan& plan_;
  AgentOptions& agent_;
  NodeRange nodes_;
  bool master_port_given_ = false;
  Mode mode_ = Mode::kSingleNode;
};

}  // namespace

absl::Status PlanRendezvous(const Options& options, const EnvMap& env, MachineProbe& machine,
                            Plan* plan) {
  return RendezvousPlanner(options, env, machine, plan).Run();
}

}  // namespace muster
