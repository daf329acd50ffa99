#include "launcher/option_table.h"

#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "launcher/option_values.h"
#include "launcher/rdzv_conf.h"

namespace muster {
namespace {

constexpr int kPortMax = 65535;
constexpr int kCountMax = 1000000;

template <auto Parse>
absl::Status Checked(absl::string_view text) {
  return Parse(text).status();
}

template <int Min, int Max>
absl::Status CheckedWhole(absl::string_view text) {
  return ParseWhole(text, Min, Max).status();
}

absl::Status CheckedStartMethod(absl::string_view text) {
  if (text == "spawn" || text == "fork" || text == "forkserver") return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(Quoted(text), " is not a choice: give spawn, fork or forkserver"));
}

absl::Status CheckedEventHandler(absl::string_view text) {
  if (text == "null") return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(
      Quoted(text), " names a handler in Python, which muster cannot load: leave the option out"));
}

absl::Status CheckedShell(absl::string_view text) {
  if (text == "bash" || text == "zsh" || text == "fish") return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(Quoted(text), " is not a choice: give bash, zsh or fish"));
}

using enum OptionKind;
using enum OptionGroup;

// clang-format off
constexpr OptionSpec kOptions[] = {
    // ── Workers ──
    {.name = "nproc-per-node", .group = kWorkers, .metavar = "N|cpu|gpu|auto", .default_text = "1",
     .help = "Workers on this node: a number, or one per usable CPU or GPU. auto: one per GPU, and "
             "per CPU where there is no GPU.",
     .check = Checked<ParseSlots>},
    {.name = "module", .letter = 'm', .kind = kSwitch, .group = kWorkers,
     .help = "PROGRAM is a Python module (python -m).",
     .check = Checked<ParseSwitch>},
    {.name = "run-path", .kind = kSwitch, .group = kWorkers,
     .help = "PROGRAM is a Python script, whatever it is called. Wins over --no-python.",
     .check = Checked<ParseSwitch>},
    {.name = "no-python", .kind = kSwitch, .group = kWorkers,
     .help = "Execute PROGRAM itself, whatever it is called. Needed only for a .py file that is to "
             "run by its first line.",
     .check = Checked<ParseSwitch>},
    {.name = "role", .group = kWorkers, .metavar = "NAME", .default_text = "default",
     .help = "What the workers of this node are called (ROLE_NAME, and in the prefix of their "
             "lines)."},
    {.name = "virtual-local-rank", .kind = kSwitch, .group = kWorkers,
     .help = "Every worker sees LOCAL_RANK 0 and only its own GPU.",
     .check = Checked<ParseSwitch>},
    {.name = "numa-binding", .group = kWorkers, .metavar = "node|socket|exclusive|core-complex",
     .help = "Bind each worker to CPUs near its GPU: node (all of the NUMA node), socket, "
             "exclusive (its share of the node's cores) or core-complex (those of one L3 cache). "
             "Without GPUs the workers go round the NUMA nodes.",
     .check = Checked<ParseNumaBinding>},
    {.name = "stdin", .group = kWorkers, .metavar = "inherit|none|RANK", .default_text = "inherit",
     .in_torchrun = false,
     .help = "Who reads the standard input: all workers, none of them, or the one with this local "
             "rank.",
     .check = Checked<ParseStdin>},
    {.name = "start-method", .group = kWorkers, .metavar = "spawn|fork|forkserver",
     .default_text = "spawn",
     .help = "Accepted and without effect: workers are always programs of their own.",
     .check = CheckedStartMethod},

    // ── Nodes ──
    {.name = "nnodes", .group = kNodes, .metavar = "N|MIN:MAX", .default_text = "1",
     .help = "Nodes of the job. With MIN:MAX it runs with any number between them and changes "
             "size as nodes come and go.",
     .check = Checked<ParseNodes>},
    {.name = "standalone", .kind = kSwitch, .group = kNodes,
     .help = "A job on this machine alone; other jobs on it are not met.",
     .check = Checked<ParseSwitch>},
    {.name = "rdzv-backend", .group = kNodes, .metavar = "static|c10d|etcd|etcd-v2",
     .default_text = "static",
     .help = "How the nodes find each other: by given ranks and address, at an endpoint where "
             "nodes may come and go (an endpoint without --node-rank means c10d), or through etcd, "
             "where the agents elect one of themselves as the master.",
     .check = Checked<ParseBackend>},
    {.name = "rdzv-endpoint", .group = kNodes, .metavar = "HOST[:PORT],...",
     .default_note = "none; port 29400",
     .help = "Where the master of the job listens. The node that has this address hosts it. "
             "Several are those of standing masters (musterd), of which one leads; they are tried "
             "in turn. With the backend etcd: its members, port 2379."},
    {.name = "rdzv-id", .group = kNodes, .metavar = "ID", .default_text = "none",
     .default_note = "none; random with one node",
     .may_be_empty = true,
     .help = "Name of the job, the same on all nodes and different from other jobs at the "
             "endpoint."},
    {.name = "rdzv-conf", .group = kNodes, .metavar = "KEY=VALUE,...",
     .may_be_empty = true,
     .help = "Details: join_timeout (600 s), last_call_timeout (30 s), keep_alive_interval (5 s), "
             "keep_alive_max_attempt (3), is_host, timeout (900 s, static only); for etcd: "
             "protocol, ca_cert, ssl_cert, ssl_cert_key, user, password_file, etcd_prefix "
             "(/muster), leader_lease (5 s).",
     .check = Checked<ParseRdzvConf>},
    {.name = "node-rank", .group = kNodes, .metavar = "N", .default_text = "0",
     .help = "Rank of this node (static).",
     .check = CheckedWhole<0, kCountMax>},
    {.name = "master-addr", .group = kNodes, .metavar = "HOST", .default_text = "127.0.0.1",
     .help = "Address of the node with rank 0, which its workers get as MASTER_ADDR (static).",
     .check = Checked<ParseHost>},
    {.name = "master-port", .group = kNodes, .metavar = "PORT",
     .default_note = "any free port with one node, 29500 with several",
     .help = "MASTER_PORT of the workers (static).",
     .check = CheckedWhole<0, kPortMax>},
    {.name = "local-addr", .group = kNodes, .metavar = "ADDR",
     .default_note = "the address that the other nodes see",
     .help = "Address of this node for the others.",
     .check = Checked<ParseHost>},
    {.name = "node-id", .group = kNodes, .metavar = "NAME",
     .default_note = "from the node rank, SLURM_NODEID, JOB_COMPLETION_INDEX or the host name",
     .in_torchrun = false,
     .help = "Name of this node in the job; it keeps its ranks under this name."},
    {.name = "topology-key", .group = kNodes, .metavar = "KEY", .in_torchrun = false,
     .help = "New nodes get ranks in the order of this text (2 before 10), so that neighbours in "
             "the network are neighbours in rank."},
    {.name = "join-policy", .group = kNodes, .metavar = "now|checkpoint|restart",
     .default_text = "now", .in_torchrun = false,
     .help = "When a node that comes later is taken in: at once, at the next commit point, or when "
             "a generation ends anyway.",
     .check = Checked<ParseJoinPolicy>},
    {.name = "node-unit", .group = kNodes, .metavar = "N", .default_text = "1",
     .in_torchrun = false,
     .help = "The job runs with a multiple of so many nodes; those left over wait. MIN and MAX are "
             "multiples of it.",
     .check = CheckedWhole<1, kCountMax>},
    {.name = "fencing", .group = kNodes, .metavar = "token|strict", .default_text = "token",
     .in_torchrun = false,
     .help = "Whether the job goes on at once when a node is lost (token), or only when the "
             "workers of that node have ended for certain (strict).",
     .check = Checked<ParseFencing>},
    {.name = "master-loss-timeout", .group = kNodes, .metavar = "TIME",
     .default_note = "1h; 30s with strict fencing", .in_torchrun = false,
     .help = "How long workers go on while the master cannot be reached.",
     .check = Checked<ParsePositiveSpan>},
    {.name = "exit-barrier-timeout", .group = kNodes, .metavar = "TIME", .default_text = "300s",
     .in_torchrun = false,
     .help = "How long the node that hosts the master waits at the end for the other nodes.",
     .check = Checked<ParsePositiveSpan>},

    // ── Failures and signals ──
    {.name = "max-restarts", .group = kFailures, .metavar = "N", .default_text = "0",
     .help = "Failures that the job survives, counted over all nodes. Nodes that come and go are "
             "not failures.",
     .check = CheckedWhole<0, kCountMax>},
    {.name = "max-start-failures", .group = kFailures, .metavar = "N", .default_text = "0",
     .default_note = "0: no limit", .in_torchrun = false,
     .help = "Quick failures in a row (within 10 s and before READY=1) that end the job, whatever "
             "is left of --max-restarts.",
     .check = CheckedWhole<0, kCountMax>},
    {.name = "max-restart-delay", .group = kFailures, .metavar = "TIME", .default_text = "30s",
     .in_torchrun = false,
     .help = "The longest wait before a restart: from the second quick failure in a row on the job "
             "waits 1 s, 2 s, 4 s and so on. 0: every restart is immediate.",
     .check = Checked<ParseSpan>},
    {.name = "fatal-exit-codes", .group = kFailures, .metavar = "CODES",
     .default_note = "none", .in_torchrun = false,
     .may_be_empty = true,
     .help = "Exit codes of a worker that end the job at once, as in 3,64-78; 128 + n for signal "
             "n.",
     .check = Checked<ParseExitCodes>},
    {.name = "max-node-failures", .group = kFailures, .metavar = "N", .default_text = "0",
     .default_note = "0: no limit", .in_torchrun = false,
     .help = "A node that fails so often within --node-failure-window is not taken into the job "
             "while there are others.",
     .check = CheckedWhole<0, kCountMax>},
    {.name = "node-failure-window", .group = kFailures, .metavar = "TIME", .default_text = "1h",
     .in_torchrun = false,
     .help = "How long the failure of a node is remembered for --max-node-failures.",
     .check = Checked<ParsePositiveSpan>},
    {.name = "stall-timeout", .group = kFailures, .metavar = "TIME", .default_text = "0",
     .default_note = "0: no limit", .in_torchrun = false,
     .help = "A worker that has reported STEP and then reports nothing for so long is killed and "
             "counts as failed.",
     .check = Checked<ParseSpan>},
    {.name = "shutdown-timeout", .group = kFailures, .metavar = "TIME",
     .default_note = "30s; 25s in Kubernetes", .variable = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT",
     .help = "How long a worker has between SIGTERM and SIGKILL, on every path.",
     .check = Checked<ParseSpan>},
    {.name = "orphan-grace", .group = kFailures, .metavar = "TIME", .default_text = "0.5s",
     .in_torchrun = false,
     .help = "The same for processes whose worker has exited, and for workers whose muster was "
             "killed.",
     .check = Checked<ParseSpan>},
    {.name = "signals-to-handle", .group = kFailures, .metavar = "NAMES",
     .default_text = "SIGTERM,SIGINT,SIGHUP,SIGQUIT",
     .help = "Signals that muster passes to the workers and then ends the job.",
     .check = Checked<ParseSignals>},
    {.name = "signals-to-forward", .group = kFailures, .metavar = "NAMES",
     .default_text = "SIGUSR1,SIGUSR2", .in_torchrun = false,
     .help = "Signals that muster passes to the workers while the job goes on. none: no signal.",
     .check = Checked<ParseSignals>},
    {.name = "monitor-interval", .group = kFailures, .metavar = "SECONDS", .default_text = "0.1",
     .help = "Accepted and without effect: nothing is polled.",
     .check = Checked<ParsePositiveSpan>},

    // ── Output ──
    {.name = "log-dir", .group = kOutput, .metavar = "DIR",
     .help = "Folder for the workers' output and error files. /dev/null: no files."},
    {.name = "redirects", .letter = 'r', .group = kOutput, .metavar = "STREAMS",
     .default_text = "0",
     .help = "Output that goes to files instead of the console: 0 none, 1 stdout, 2 stderr, 3 "
             "both; or by local rank, as in 0:3,1:2.",
     .check = Checked<ParseStreams>},
    {.name = "tee", .letter = 't', .group = kOutput, .metavar = "STREAMS", .default_text = "0",
     .help = "Output that goes to files and, with a prefix, to the console. Values as for "
             "--redirects.",
     .check = Checked<ParseStreams>},
    {.name = "log-line-prefix-template", .group = kOutput, .metavar = "TEXT",
     .default_text = "[${role_name}${local_rank}]:",
     .variable = "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE",
     .may_be_empty = true,
     .help = "Prefix of the lines of --tee, with ${role_name} ${local_rank} ${rank} ${hostname}."},
    {.name = "log-max-bytes", .group = kOutput, .metavar = "BYTES", .default_text = "0",
     .default_note = "no limit", .in_torchrun = false,
     .help = "Size at which a log file of a worker is continued in a new one, as in 500K, 10M, 1G; "
             "the older ones are called FILE.1, FILE.2 and so on.",
     .check = Checked<ParseBytes>},
    {.name = "log-max-files", .group = kOutput, .metavar = "N", .default_text = "5",
     .in_torchrun = false,
     .help = "How many files of one stream are kept with --log-max-bytes.",
     .check = CheckedWhole<1, 1000>},
    {.name = "local-ranks-filter", .group = kOutput, .metavar = "RANKS", .default_note = "all",
     .may_be_empty = true,
     .help = "Local ranks whose output reaches the console, as in 0,1.",
     .check = Checked<ParseRanks>},
    {.name = "duplicate-stdout-filters", .group = kOutput, .metavar = "TEXTS",
     .may_be_empty = true,
     .help = "Lines of tee'd stdout with one of these texts are also written to "
             "filtered_stdout.log. A comma within a text is written twice.",
     .check = Checked<ParseFilters>},
    {.name = "duplicate-stderr-filters", .group = kOutput, .metavar = "TEXTS",
     .may_be_empty = true,
     .help = "The same for stderr and filtered_stderr.log.",
     .check = Checked<ParseFilters>},

    // ── Security ──
    {.name = "tls-ca", .group = kSecurity, .metavar = "FILE", .variable = "MUSTER_TLS_CA",
     .in_torchrun = false,
     .help = "Talk to the master over TLS; its certificate must be of the CA in this PEM file."},
    {.name = "tls-cert", .group = kSecurity, .metavar = "FILE", .variable = "MUSTER_TLS_CERT",
     .in_torchrun = false,
     .help = "Certificate of this node (PEM): shown to the master, and to the others by the node "
             "that hosts it. With --tls-ca and without this one a node does not host."},
    {.name = "tls-key", .group = kSecurity, .metavar = "FILE", .variable = "MUSTER_TLS_KEY",
     .in_torchrun = false,
     .help = "The key of that certificate (PEM)."},
    {.name = "tls-server-name", .group = kSecurity, .metavar = "NAME",
     .default_note = "the endpoint's host", .in_torchrun = false,
     .help = "Name that the master's certificate must have."},
    {.name = "token-file", .group = kSecurity, .metavar = "FILE", .variable = "MUSTER_TOKEN_FILE",
     .in_torchrun = false,
     .help = "File with the token that the master wants, sent only over TLS or within this host."},
    {.name = "allowed-peers", .group = kSecurity, .metavar = "NAMES", .default_note = "any",
     .in_torchrun = false,
     .help = "Names in certificates (DNS, IP address, URI; *.example.org), one of which a node "
             "must have when this node hosts the master.",
     .check = Checked<ParseNames>},
    {.name = "require-auth", .kind = kSwitch, .group = kSecurity, .in_torchrun = false,
     .help = "Do not host a master outside loopback that asks nobody who they are.",
     .check = Checked<ParseSwitch>},

    // ── Other ──
    {.name = "log-level", .group = kOther, .metavar = "debug|info|warning|error",
     .default_text = "warning",
     .variable = "LOGLEVEL", .in_torchrun = false,
     .help = "The least important lines of muster itself that are printed.",
     .check = Checked<ParseLogLevel>},
    {.name = "report-file", .group = kOther, .metavar = "FILE", .in_torchrun = false,
     .help = "Where the end of the job is told as JSON, after success too (docs/REPORT.md)."},
    {.name = "termination-log", .group = kOther, .metavar = "FILE",
     .default_note = "/dev/termination-log in Kubernetes", .in_torchrun = false,
     .help = "Where a failure is told in at most 4096 bytes, if that file exists."},
    {.name = "dry-run", .kind = kSwitch, .group = kOther, .in_torchrun = false,
     .help = "Print what would be done, each value with where it comes from, and do nothing.",
     .check = Checked<ParseSwitch>},
    {.name = "event-log-handler", .group = kOther, .metavar = "null", .default_text = "null",
     .help = "Accepted; there are no handlers to choose from.",
     .check = CheckedEventHandler},
    {.name = "logs-specs", .kind = kRefused, .has_pet = false,
     .help = "it names a class in Python, which muster cannot load: use --log-dir, --redirects, "
             "--tee and --log-line-prefix-template"},
    {.name = "print-completion", .group = kOther, .metavar = "bash|zsh|fish", .has_pet = false,
     .help = "Print what completes the command line in that shell, and do nothing else.",
     .check = CheckedShell},
    {.name = "version", .kind = kSwitch, .group = kOther, .in_torchrun = false, .has_pet = false,
     .help = "Print the version of muster, also when it is called torchrun, and do nothing else.",
     .check = Checked<ParseSwitch>},
};
// clang-format on

}  // namespace

const CommandSpec& RunSpec() {
  static constexpr CommandSpec kRun{
      .name = "run",
      .arguments = "PROGRAM [ARGUMENTS...]",
      .help = "Runs a job, or one node of it",
      .options = kOptions,
      .ends_at_program = true,
  };
  return kRun;
}

const OptionSpec* FindSpec(absl::string_view name, const CommandSpec& command) {
  for (const OptionSpec& spec : command.options) {
    if (name == spec.name) return &spec;
  }
  return nullptr;
}

std::string PetVariable(const OptionSpec& spec) {
  if (!spec.has_pet) return "";
  return absl::StrCat("PET_", absl::AsciiStrToUpper(absl::StrReplaceAll(spec.name, {{"-", "_"}})));
}

const char* GroupTitle(OptionGroup group) {
  switch (group) {
    case kWorkers:
      return "Workers";
    case kNodes:
      return "Nodes and rendezvous";
    case kFailures:
      return "Failures and signals";
    case kOutput:
      return "Output of the workers";
    case kSecurity:
      return "Security";
    case kOther:
      return "Other";
  }
  return "";
}

}  // namespace muster
