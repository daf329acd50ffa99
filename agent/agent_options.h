#ifndef MUSTER_AGENT_AGENT_OPTIONS_H_
#define MUSTER_AGENT_AGENT_OPTIONS_H_

#include <chrono>
#include <csignal>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/host_port.h"
#include "base/time.h"
#include "rendezvous/etcd_options.h"
#include "rendezvous/exit_code_set.h"
#include "rendezvous/security.h"
#include "rendezvous/settings.h"

namespace muster {

// torchrun's redirect and tee values: a bit set of streams.
enum class Streams { kNone = 0, kStdout = 1, kStderr = 2, kBoth = 3 };

inline bool HasStdout(Streams s) { return (static_cast<int>(s) & 1) != 0; }
inline bool HasStderr(Streams s) { return (static_cast<int>(s) & 2) != 0; }

// A value for every local rank, with exceptions: "3", or "0:1,1:2" (unlisted ranks: none).
struct StreamsByRank {
  Streams otherwise = Streams::kNone;
  std::map<int, Streams> by_local_rank;

  Streams For(int local_rank) const {
    auto it = by_local_rank.find(local_rank);
    return it == by_local_rank.end() ? otherwise : it->second;
  }
};

// Where the workers' output goes. All empty: plain pass-through.
struct LogOptions {
  std::string
      log_dir;  // "" = none asked for: a private directory for error files, removed on success
  StreamsByRank redirects;
  StreamsByRank tee;  // implies redirect of the same stream
  std::string prefix_template =
      "[${role_name}${local_rank}]:";   // before each line of a tee'd stream
  std::vector<int> local_ranks_filter;  // whose output reaches the console; empty = all
  int64_t bytes_max = 0;                // of one log file, then it is rotated; 0: no limit
  int files_max = 5;                    // of a rotated stream, the current one included
  std::vector<std::string> duplicate_stdout_filters;
  std::vector<std::string> duplicate_stderr_filters;
};

enum class StdinMode { kInherit, kNone, kOneRank };

// Whether this node may host the master: found out by binding the endpoint, or settled by
// `is_host` of --rdzv-conf.
enum class HostMaster { kAuto, kYes, kNo };

// Everything the agent of one node is told by the command line. Plain values, validated by
// launcher/plan.h.
struct AgentOptions {
  // Who.
  std::string job_id = "none";
  std::string node_id;
  std::string role = "default";
  int slots = 1;  // workers on this node

  // With whom.
  JobSettings settings;
  std::string endpoint_host;  // of the master, or of etcd; empty in single-node jobs
  int endpoint_port = 0;
  std::vector<HostPort> other_endpoints;  // of standing masters, of which one leads; of etcd
  // The endpoints are those of etcd, through which the agents elect the master.
  std::optional<EtcdElectionOptions> election;
  std::string endpoint_option = "--rdzv-endpoint";  // that it came from, for advice
  ClientSecurity security;                          // how it talks to the master
  std::vector<std::string> allowed_peers;           // of a master on this node
  bool require_auth = false;
  int fixed_group_rank = -1;      // static mode: --node-rank
  std::string fixed_master_addr;  // static mode
  int fixed_master_port = 0;
  std::string local_addr;  // --local-addr
  std::string topology_key;
  HostMaster host_master = HostMaster::kAuto;
  // That sets settings.join_timeout; empty: the one that a master's reason names.
  std::string join_timeout_option;
  int node_lock_fd = -1;  // keeps node_id ours while a copy of it is open: the warden holds one too

  // What.
  std::string program;            // as the user calls it, for the report
  std::vector<std::string> argv;  // of a worker, resolved: argv[0] is a path that can be executed
  LogOptions log;
  StdinMode stdin_mode = StdinMode::kInherit;
  int stdin_local_rank = 0;
  bool virtual_local_rank = false;
  std::vector<std::vector<uint32_t>> cpus;       // of each local rank; empty: they run where we may
  std::map<std::string, std::string> extra_env;  // of every worker, besides torchrun's variables

  // Codes with which a program ends that has said itself what is wrong: no block on stderr then.
  ExitCodeSet told_exit_codes;

  // Where its end is told besides stderr; empty: nowhere.
  std::string report_file;      // JSON, at every end
  std::string error_file;       // the launcher's own TORCHELASTIC_ERROR_FILE: after a failure
  std::string termination_log;  // Kubernetes' termination message, where the file exists

  // How it stops.
  Duration stop_grace = std::chrono::seconds(30);  // TERM to KILL
  Duration orphan_grace =
      std::chrono::milliseconds(500);  // the same for processes whose worker or agent is gone
  std::vector<int> signals_to_handle = {SIGTERM, SIGINT, SIGHUP,
                                        SIGQUIT};            // forward, then shut down
  std::vector<int> signals_to_forward = {SIGUSR1, SIGUSR2};  // forward, go on

  // All endpoints, the first one first.
  std::vector<HostPort> endpoints() const {
    std::vector<HostPort> all = {{endpoint_host, endpoint_port}};
    all.insert(all.end(), other_endpoints.begin(), other_endpoints.end());
    return all;
  }

  bool single_node() const { return settings.nodes_max == 1 && endpoint_host.empty(); }
};

}  // namespace muster

#endif  // MUSTER_AGENT_AGENT_OPTIONS_H_
