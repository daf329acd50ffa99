#include <sys/random.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/endpoint_list.h"
#include "base/host_port.h"
#include "base/log.h"
#include "launcher/cluster_door.h"
#include "launcher/control_command.h"
#include "launcher/exit_codes.h"
#include "rendezvous/cluster.h"
#include "rendezvous/credential_files.h"
#include "rendezvous/last_will.h"
#include "rendezvous/security_log.h"

namespace muster {
namespace {

// The others notice a lost node by its silence at the latest, so that there is no use in more.
constexpr Duration kLastWillTimeout = std::chrono::seconds(10);

std::optional<bool> IsHost(HostMaster host_master) {
  switch (host_master) {
    case HostMaster::kAuto:
      return std::nullopt;
    case HostMaster::kYes:
      return true;
    case HostMaster::kNo:
      return false;
  }
  return std::nullopt;
}

uint64_t RandomSeed() {
  uint64_t seed = 0;
  if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed)) seed = static_cast<uint64_t>(getpid());
  return seed;
}

std::unique_ptr<RendezvousClient> MakeClient(const AgentOptions& options) {
  LogExposure({options.security.token_file, options.security.tls.key});
  if (options.election.has_value()) {
    LogExposure({options.election->etcd.key_file, options.election->etcd.password_file});
  }
  ClusterOptions cluster;
  cluster.endpoints = options.endpoints();
  cluster.election = options.election;
  cluster.own_host = options.local_addr;
  cluster.is_host = IsHost(options.host_master);
  cluster.security = options.security;
  cluster.allowed_peers = options.allowed_peers;
  cluster.require_auth = options.require_auth;
  cluster.seed = RandomSeed();
  cluster.on_decision = [](const std::string& job_id, const Reason& reason) {
    if (LogEnabled(LogLevel::kInfo)) {
      Log(LogLevel::kInfo, absl::StrCat("master of job ", job_id, ": ", Sentence(reason)));
    }
  };
  const bool asks_who = HostedSecurity(cluster).asks_who();
  cluster.on_hosting = [asks_who](const std::string& address) {
    const absl::StatusOr<HostPort> endpoint = ParseHostPort(address, 0);
    const bool is_open = !asks_who && (!endpoint.ok() || !IsLoopbackHost(endpoint->host));
    Log(is_open ? LogLevel::kWarning : LogLevel::kInfo,
        absl::StrCat(
            "the master listens on ", address,
            is_open ? " and asks nobody who they are: keep the port inside the cluster" : ""));
  };
  return MakeClusterRendezvous(cluster);
}

// The words of a last will that agent_loop.cc adds where masters are elected.
std::optional<EtcdElectionOptions> ElectionOf(std::map<std::string, std::string>& values,
                                              const std::vector<HostPort>& endpoints) {
  if (values["--etcd-prefix"].empty()) return std::nullopt;
  EtcdElectionOptions election;
  election.prefix = values["--etcd-prefix"];
  election.etcd.endpoints = endpoints;
  election.etcd.tls = values["--etcd-tls"] == "1";
  election.etcd.ca_file = values["--etcd-ca"];
  election.etcd.cert_file = values["--etcd-cert"];
  election.etcd.key_file = values["--etcd-key"];
  election.etcd.user = values["--etcd-user"];
  election.etcd.password_file = values["--etcd-password-file"];
  return election;
}

class GrpcCluster : public ClusterDoor {
 public:
  absl::Status CheckFiles(const AgentOptions& options) override {
    const ClientSecurity& security = options.security;
    const absl::Status files = muster::CheckFiles(security.tls, security.token_file);
    if (!files.ok() || !options.election.has_value()) return files;
    return muster::CheckFiles(options.election->etcd);
  }

  RendezvousFactory factory() override { return MakeClient; }

  int Control(const CommandSpec& command, const Options& options) override {
    return ControlCommand(command, options);
  }

  int SendLastWill(const std::vector<std::string>& words) override {
    std::map<std::string, std::string> values;
    for (size_t i = 0; i + 1 < words.size(); i += 2) values[words[i]] = words[i + 1];
    ClientSecurity security;
    security.tls = {values["--tls-ca"], values["--tls-cert"], values["--tls-key"]};
    security.server_name = values["--tls-server-name"];
    security.token_file = values["--token-file"];
    LastWill will;
    will.job_id = values["--job"];
    will.node_id = values["--node"];
    absl::StatusOr<std::vector<HostPort>> endpoints = ParseEndpoints(values["--endpoint"], 0);
    if (!endpoints.ok() || endpoints->front().port == 0 || will.job_id.empty() ||
        will.node_id.empty() || !absl::SimpleAtoi(values["--incarnation"], &will.incarnation) ||
        !absl::SimpleAtoi(values["--generation"], &will.generation)) {
      Log(LogLevel::kError,
          "last-will: needs --endpoint HOST:PORT,... --job ID --node ID --incarnation N "
          "--generation N: it is for muster's own use");
      return kExitUsage;
    }
    ClusterOptions where;
    where.election = ElectionOf(values, *endpoints);
    where.endpoints = *std::move(endpoints);
    where.security = std::move(security);
    absl::Status sent = muster::SendLastWill(where, will, kLastWillTimeout);
    if (sent.ok()) return 0;
    Log(LogLevel::kDebug, absl::StrCat("last-will: ", sent.message()));
    return kExitUnavailable;
  }
};

}  // namespace

ClusterDoor* FindClusterDoor() {
  static GrpcCluster& door = *new GrpcCluster;
  return &door;
}

}  // namespace muster
